// roles: four different jobs in one layer. Each position has a letter x (12) and a payload y (8), embeddings
// added. At positions 4 … 23 four read-outs of 8 classes ask for
//   prev   y[t-1]
//   first  y[0]
//   succ   y at the latest j < t whose letter follows x[t] (mod 12); unscored if there is none
//   maj    1 if more of x[0 … t] are below 6 than not; unscored at a tie
// Four heads take one job each: by position, by place, by content, and by counting (even attention).
#pragma once

#include "framework/data/task.h"

namespace headlab {

/// Read-out i and head target i are the same role; maj's head target is `uniform`.
class RolesTask final : public Task {
 public:
  static constexpr std::int64_t context = 24, letters = 12, payloads = 8, first_scored = 4;
  enum Role : int { prev, first, succ, maj };
  static constexpr std::int64_t roles = 4;

  std::string name() const override { return "roles"; }
  std::string shows() const override { return "four different jobs in one layer, one head each"; }
  Needs needs() const override;
  Recipe recipe() const override;
  std::vector<HeadTarget> head_targets() const override;
  std::vector<Claim> claims() const override;
  std::vector<Rung> ladder() const override;
  /// One in eight of the first three, one in two of maj, weighted by how often each is scored.
  double chance() const override { return 0.22; }

 protected:
  void write(Batch& batch, std::int64_t row, Random& random) const override;
  std::string spell(std::size_t stream, std::int64_t id) const override;
};

}  // namespace headlab
