// Prefix matching: does a head, on random tokens that repeat, look at what followed earlier copies of its
// token? The behaviour that makes an induction head (Olsson et al. 2022).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "framework/data/task.h"
#include "framework/train/model.h"

namespace headlab {

/// A start token where the task has one, then `distinct` random tokens that differ from each other, four
/// times over, in 10 draws.
struct PrefixPlan {
  static constexpr std::int64_t repeats = 4, draws = 10, shuffled = 40, fewest = 4, most = 25;
  std::int64_t start = 0;     ///< 1 with a start token
  std::int64_t distinct = 0;  ///< min(25, ⌊(context − 1)/4⌋, tokens that are neither start nor delimiter)
  std::string absent;         ///< why it cannot be measured; else empty

  std::int64_t length() const { return start + repeats * distinct; }
};
/// For decoders alone. Absent with fewer than 4 distinct tokens.
PrefixPlan prefix_plan(const Task& task, const Needs& needs);

/// `examples` sequences of the plan; `in_order` false: each one's tokens after the start in random order.
Batch prefix_batch(const Task& task, const Needs& needs, const PrefixPlan& plan, std::int64_t examples,
                   std::uint64_t seed, bool in_order);

/// Of one head: the mean over queries in repeats 2, 3, 4 of Σ A_ij over {j : tok_{j−1} = tok_i, j−1 < i}.
struct PrefixMatching {
  double score = 0;
  /// The same keys, while the head reads shuffled tokens: what it gives to those places whatever stands
  /// there. One entry a sequence.
  std::vector<double> shuffled;
};
/// Head by head, in the order of all_heads(); empty entries for layers that show no pattern. For a model in
/// evaluation mode, under NoGrad (see Looking). Error: a plan that is absent.
std::vector<std::optional<PrefixMatching>> prefix_matching(Model& model, const Task& task,
                                                           const PrefixPlan& plan, std::uint64_t seed);

}  // namespace headlab
