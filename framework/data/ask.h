// ask: a negative control. The eight offsets of `offsets`, but each position carries one random question
// a = 1 … 8, and only the token a positions back is asked for: eight patterns, one look-up, so one head will
// do. Keys know their distance (relative positions); a question and a place of one's own would have to be
// multiplied first.
#pragma once

#include "framework/data/task.h"

namespace headlab {

class AskTask final : public Task {
 public:
  static constexpr std::int64_t context = 16, tokens = 32, offsets = 8;

  std::string name() const override { return "ask"; }
  std::string shows() const override {
    return "a negative control: eight patterns, but one look-up at a time";
  }
  Needs needs() const override;
  Recipe recipe() const override;
  std::vector<HeadTarget> head_targets() const override;
  std::vector<Claim> claims() const override;
  std::vector<Rung> ladder() const override { return {{1, 1.0}, {8, 1.0}, {16, 1.0}}; }
  double chance() const override { return 1.0 / tokens; }
  std::optional<double> best_fixed_offset() const override { return 1.0 / offsets; }

 protected:
  void write(Batch& batch, std::int64_t row, Random& random) const override;
  std::string spell(std::size_t stream, std::int64_t id) const override;
};

}  // namespace headlab
