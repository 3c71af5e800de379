// offsets: the head-count ladder. Sixteen uniform tokens of 32; at positions 8 … 15 eight read-outs predict
// the token 1, 2, … 8 positions back. A head is one look-up per query, so eight answers need eight heads.
#pragma once

#include "framework/data/task.h"

namespace headlab {

/// Read-out i and head target i are about offset i + 1.
class OffsetsTask final : public Task {
 public:
  static constexpr std::int64_t context = 16, tokens = 32, offsets = 8;

  std::string name() const override { return "offsets"; }
  std::string shows() const override {
    return "one look-up per head: eight answers at once need eight heads";
  }
  Needs needs() const override;
  Recipe recipe() const override;
  std::vector<HeadTarget> head_targets() const override;
  std::vector<Claim> claims() const override;
  std::vector<Rung> ladder() const override;
  double chance() const override { return 1.0 / tokens; }
  std::optional<double> best_fixed_offset() const override { return 1.0 / offsets; }

 protected:
  void write(Batch& batch, std::int64_t row, Random& random) const override;
  std::string spell(std::size_t stream, std::int64_t id) const override;
};

}  // namespace headlab
