// induction: a circuit of two layers. 32 tokens of 32 kinds; the first c = 32 − L are distinct, the last L
// (8 … 12) repeat a segment of them that starts at s. Positions c … 30 predict the next token: it stands
// after the earlier occurrence of the current one, which one plain layer cannot find.
#pragma once

#include "framework/data/task.h"

namespace headlab {

class InductionTask final : public Task {
 public:
  static constexpr std::int64_t context = 32, tokens = 32, shortest = 8, longest = 12;
  enum Target : int { successor, previous };

  std::string name() const override { return "induction"; }
  std::string shows() const override { return "a two-layer circuit: find where this was before, copy on"; }
  Needs needs() const override;
  Recipe recipe() const override;
  /// successor: at a scored query t, the token after the earlier occurrence, s + (t − c) + 1. previous: at
  /// the positions that successor points to, the token before; there the first layer's work is used.
  std::vector<HeadTarget> head_targets() const override;
  std::vector<Claim> claims() const override;
  std::vector<Rung> ladder() const override;
  double chance() const override { return 1.0 / tokens; }
  /// Of `successor`: Σ_L (L − 1)/(33 − 2L) / Σ_L (L − 1), since offsets 12 … 20 occur for every L.
  std::optional<double> best_fixed_offset() const override { return 0.084; }

 protected:
  void write(Batch& batch, std::int64_t row, Random& random) const override;
  std::string spell(std::size_t stream, std::int64_t id) const override;
};

}  // namespace headlab
