// Life-lines: when in a training each role is born.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "framework/heads/moments.h"
#include "framework/heads/roles.h"

namespace headlab {

/// Where a course of numbers jumps: the two levels, one up to an index and one from it on, that leave the
/// least sum of squares.
struct ChangePoint {
  std::size_t index = 0;  ///< first of the second level
  double before = 0, after = 0;
  double explained = 0;  ///< share of the sum of squares about the mean that the two levels take away
};
/// Ties go to the earlier index. Absent with fewer than 4 numbers, one that is not finite, or all equal.
std::optional<ChangePoint> change_point(std::span<const double> values);

/// One head from the first moment to the last. Indices are those of moments.
struct HeadLife {
  HeadId id;
  std::string role;              ///< the main one at the end; empty: none
  std::vector<double> strength;  ///< of this role; 0 where it does not hold, or without one
  /// Its score; absent where an offset was not among those that were tested.
  std::vector<std::optional<double>> score;
  std::optional<std::size_t> born;    ///< the role holds from here to the end; absent without a role
  std::optional<ChangePoint> change;  ///< of the score, absent scores taken as 0
  /// From here to the end, matched (see match_heads()) with itself at the end; absent where never before.
  std::optional<std::size_t> settled;
};

struct RunLife {
  std::uint64_t seed = 0;
  std::vector<std::int64_t> steps;  ///< of the moments
  std::vector<HeadLife> heads;
  std::map<std::string, std::size_t> births;  ///< role: from here to the end some head has it
};

/// Looks at every moment; the model ends with the weights of the last. `untrained`: see analyse_roles().
/// Errors: no moments, or steps that do not ascend; weights that do not fit.
RunLife life_of(Model& model, const ModelBuilder& build, const Task& task, std::uint64_t seed,
                std::span<const Moment> moments, const UntrainedHeads& untrained);

}  // namespace headlab
