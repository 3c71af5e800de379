// senses: "bank" in miniature. Nine to twelve words, two of them ambiguous (bank, bat, spring, seal); for
// each a cue stands somewhere that tells which of its two senses is meant. A second negative control: every
// head count is always right, and the work spreads over the heads that there are.
#pragma once

#include "framework/data/task.h"

namespace headlab {

class SensesTask final : public Task {
 public:
  static constexpr std::int64_t ambiguous = 4, senses = 2, cues = 3, shortest = 9, context = 12;

  std::string name() const override { return "senses"; }
  std::string shows() const override {
    return "a negative control: meaning from context; the work spreads over all heads";
  }
  /// Word 0 … 3 is ambiguous; sense s of word w has the cues 4 + (2w + s)·3 … + 2; class 2w + s.
  Needs needs() const override;
  Recipe recipe() const override;
  std::vector<HeadTarget> head_targets() const override;
  std::vector<Claim> claims() const override;
  std::vector<Rung> ladder() const override { return {{1, 1.0}, {4, 1.0}, {8, 1.0}, {16, 1.0}}; }
  /// The word is known, its sense is not.
  double chance() const override { return 0.5; }

 protected:
  void write(Batch& batch, std::int64_t row, Random& random) const override;
  void write_held_out(Batch& batch, std::int64_t row, std::uint64_t seed, std::int64_t index) const override;
  std::string spell(std::size_t stream, std::int64_t id) const override;
};

}  // namespace headlab
