// prev: a negative control. The tokens of `offsets`, but only the one before is asked for: one head does it
// as well as sixteen, and with several heads no single one matters.
#pragma once

#include "framework/data/task.h"

namespace headlab {

class PrevTask final : public Task {
 public:
  static constexpr std::int64_t context = 16, tokens = 32;

  std::string name() const override { return "prev"; }
  std::string shows() const override { return "a negative control: one look-up, so the head count is idle"; }
  Needs needs() const override;
  Recipe recipe() const override;
  std::vector<HeadTarget> head_targets() const override;
  std::vector<Claim> claims() const override;
  std::vector<Rung> ladder() const override { return {{1, 1.0}, {4, 1.0}, {8, 1.0}, {16, 1.0}}; }
  double chance() const override { return 1.0 / tokens; }
  std::optional<double> best_fixed_offset() const override { return 1.0; }

 protected:
  void write(Batch& batch, std::int64_t row, Random& random) const override;
  std::string spell(std::size_t stream, std::int64_t id) const override;
};

}  // namespace headlab
