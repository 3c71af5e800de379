// sort: eight different values of 0 … 15 in random order, a mark, and the values again in ascending order.
// Each output looks for the next larger value. One head becomes "the next-larger head"; several share the
// work and none of them is it any more, though every answer stays right.
#pragma once

#include "framework/data/task.h"

namespace headlab {

class SortTask final : public Task {
 public:
  static constexpr std::int64_t values = 16, length = 8, separator = values, tokens = values + 1;
  static constexpr std::int64_t context = 2 * length;  ///< the last value is never read

  std::string name() const override { return "sort"; }
  std::string shows() const override { return "one head is the next-larger head; several spread the work"; }
  Needs needs() const override;
  Recipe recipe() const override;
  Accuracy accuracy() const override { return Accuracy::whole_sequence; }
  std::vector<HeadTarget> head_targets() const override;
  std::vector<Claim> claims() const override;
  std::vector<Rung> ladder() const override { return {{1, 1.0}, {4, 1.0}, {8, 1.0}, {16, 1.0}}; }
  double chance() const override { return 0; }
  std::vector<std::int64_t> delimiters() const override { return {separator}; }

 protected:
  void write(Batch& batch, std::int64_t row, Random& random) const override;
  std::string spell(std::size_t stream, std::int64_t id) const override;
};

}  // namespace headlab
