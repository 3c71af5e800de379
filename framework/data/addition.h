// addition: a1 a0 + b1 b0 = s0 s1 s2, the sum from its units on. Heads read the two digits that the next
// digit of the sum is made of; no head reads the carry. Pairs with ((100a + b)·2654435761 mod 2³²) mod 10 = 0
// are held out.
#pragma once

#include "framework/data/task.h"

namespace headlab {

class AdditionTask final : public Task {
 public:
  static constexpr std::int64_t plus = 10, equals = 11, tokens = 12, context = 8, first_scored = 5;

  std::string name() const override { return "addition"; }
  std::string shows() const override {
    return "heads read the digits that belong together; one head is slower, not incapable";
  }
  Needs needs() const override;
  Recipe recipe() const override;
  std::int64_t measured_steps() const override { return 400; }
  Accuracy accuracy() const override { return Accuracy::whole_sequence; }
  /// a digit, b digit: where the digits of the sum's digit i = 0, 1 stand, for the query that predicts it.
  std::vector<HeadTarget> head_targets() const override;
  std::vector<Claim> claims() const override;
  std::vector<Rung> ladder() const override { return {{1, 0.371}, {4, 0.977}, {8, 0.987}, {16, 0.991}}; }
  double chance() const override { return 0.01; }
  std::vector<std::int64_t> delimiters() const override { return {plus, equals}; }
  static bool held_out_pair(std::int64_t a, std::int64_t b);

 protected:
  void write(Batch& batch, std::int64_t row, Random& random) const override;
  void write_held_out(Batch& batch, std::int64_t row, std::uint64_t seed, std::int64_t index) const override;
  std::string spell(std::size_t stream, std::int64_t id) const override;

 private:
  static void write_sum(Batch& batch, std::int64_t row, Random& random, bool held_out);
};

}  // namespace headlab
