// The learning rate of a level, chosen on seeds of their own: a rate that suits one head count may be unfair
// to another, and choosing on the seeds that are reported would flatter every level.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "framework/sweep/statistics.h"

namespace headlab {

/// Seeds that rates are chosen on: so far behind the first reported one that those never get there.
constexpr std::int64_t choosing_seeds = 2;
constexpr std::uint64_t choosing_seeds_from = 1000;
inline std::uint64_t choosing_seed(std::uint64_t first_seed, std::int64_t index) {
  return first_seed + choosing_seeds_from + static_cast<std::uint64_t>(index);
}

struct TriedRate {
  double rate = 0;
  SeedValues loss;  ///< on the held-out set, one a choosing seed; absent: the run failed
};

struct RateChoice {
  std::vector<TriedRate> tried;          ///< in the order asked for
  std::optional<std::size_t> best = {};  ///< index of the rate that was taken; absent: not all are tried yet
  bool at_the_edge = false;              ///< the least or the largest rate won: one beyond may be better
};

/// Fills `best`: the least mean loss, of rates of which no run failed; equal ones: the earlier. Error: every
/// rate failed (names them).
void choose_rate(RateChoice& choice, std::int64_t heads);

}  // namespace headlab
