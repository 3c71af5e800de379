// recall: question answering in miniature. k1 v1 … kP vP with P = 4 … 8 different keys and different values,
// then the keys again in random order, over and over; at each of these the answer is the key's value. Where
// values may be equal it is much harder to learn: eight heads are then still guessing after the steps of the
// recipe. With sixteen heads, of width 4, half of the answers come.
#pragma once

#include "framework/data/task.h"

namespace headlab {

class RecallTask final : public Task {
 public:
  static constexpr std::int64_t context = 24, keys = 16, values = 16, tokens = keys + values;
  static constexpr std::int64_t fewest = 4, most = 8;
  enum Target : int { value, previous };

  std::string name() const override { return "recall"; }
  std::string shows() const override { return "questions and answers: find the key, read what follows it"; }
  /// Keys are tokens 0 … 15, values 16 … 31.
  Needs needs() const override;
  Recipe recipe() const override;
  std::int64_t measured_steps() const override { return 400; }
  /// value: at a question, the value's position. previous: at the values, the position before; there the
  /// first layer's work is used.
  std::vector<HeadTarget> head_targets() const override;
  std::vector<Claim> claims() const override;
  std::vector<Rung> ladder() const override;
  /// Any of the values that are there: the mean of 1/P over questions.
  double chance() const override { return 0.187; }
  std::optional<double> best_fixed_offset() const override { return 0.070; }

 protected:
  void write(Batch& batch, std::int64_t row, Random& random) const override;
  std::string spell(std::size_t stream, std::int64_t id) const override;
};

}  // namespace headlab
