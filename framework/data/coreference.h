// coreference: right answers without the head that the story promises. Two nouns of different classes and a
// property of one of the classes:
//   the cat did not chase the rivers because [mask] looked too wide .   →  they
// in four orders of its clauses. The pronoun, it or they, is the number of the noun whose class the property
// fits. One would expect a head that links it to that noun; models collect both nouns instead.
#pragma once

#include "framework/data/task.h"

namespace headlab {

class CoreferenceTask final : public Task {
 public:
  static constexpr std::int64_t context = 13, classes = 8;
  enum Target : int { antecedent, wrong_noun, property };

  std::string name() const override { return "coreference"; }
  std::string shows() const override { return "right answers without the head that the story promises"; }
  Needs needs() const override;
  Recipe recipe() const override;
  Accuracy accuracy() const override { return Accuracy::probe; }
  /// The pronoun where the nouns differ in number.
  std::vector<Probe> probes() const override;
  /// All for the query at the pronoun.
  std::vector<HeadTarget> head_targets() const override;
  std::vector<Claim> claims() const override;
  std::vector<Rung> ladder() const override { return {{1, 0.688}, {4, 0.99}, {8, 0.995}, {16, 0.995}}; }
  double chance() const override { return 0.5; }
  /// Noun 0 … 31: class·4 + which of two·2 + plural. Property: 32 + class·2 + which.
  static constexpr std::int64_t nouns = 4 * classes, properties = 2 * classes;

 protected:
  void write(Batch& batch, std::int64_t row, Random& random) const override;
  void write_held_out(Batch& batch, std::int64_t row, std::uint64_t seed, std::int64_t index) const override;
  std::string spell(std::size_t stream, std::int64_t id) const override;
};

}  // namespace headlab
