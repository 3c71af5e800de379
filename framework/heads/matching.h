// Which head of one model is which of another: two checkpoints of a training, or two seeds.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "framework/data/task.h"
#include "framework/heads/head_sites.h"

namespace headlab {

/// The assignment of rows to columns of least total cost (Hungarian method, Kuhn 1955, in the O(n³) form with
/// potentials): for each row its column, absent for rows that are left over where there are fewer columns.
/// cost [rows, columns]. Error: not rows · columns numbers, or one that is not finite.
std::vector<std::optional<std::int64_t>> assign(const std::vector<double>& cost, std::int64_t rows,
                                                std::int64_t columns);

struct HeadMatch {
  HeadId head;
  std::optional<HeadId> partner;  ///< absent: unmatched
  /// √JS to the partner in the assignment, matched or not; absent where there is none or no pattern is shown.
  std::optional<double> distance;
  /// The least √JS to a head of the other model with the keys of each row in random order: as sharp, but
  /// looking elsewhere. A match needs less.
  std::optional<double> null;
};

struct HeadMatching {
  std::vector<HeadMatch> heads;  ///< of the first model, in the order of all_heads()
  std::int64_t matched() const;
};

/// Layer by layer, on the first `sequences` of the half of the held-out set that is scored. Both models read
/// the same. For models in evaluation mode, under NoGrad (see Looking). Error: different numbers of layers
/// with heads.
HeadMatching match_heads(Model& first, Model& second, const Task& task, std::uint64_t seed,
                         std::int64_t sequences = 64);

}  // namespace headlab
