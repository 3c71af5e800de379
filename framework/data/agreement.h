// agreement: syntax, measured. Sentences such as
//   > near the dog , today the small cats that my horse saw are sleeping .
// in which the verb form (is, are, was, were) follows the number of the subject, whatever other nouns stand
// between, and the tense of the time word. A causal language model over 58 words; what counts is the number
// where some noun between differs from the subject: the first noun of all is right in 76 % of these, the last
// one in 15 %.
//
//   start [lead] time subject modifiers verb participle [adverb .3] stop
// with a lead (.4: preposition determiner noun comma) the time word stands before or after it; subject =
// determiner [adjective .3] noun; modifiers none/P/PP/R/RP = .2/.3/.15/.2/.15, P = preposition determiner
// [adjective .15] noun, R = that verb determiner noun, or that determiner noun verb.
#pragma once

#include "framework/data/task.h"

namespace headlab {

class AgreementTask final : public Task {
 public:
  static constexpr std::int64_t tokens = 58, context = 20;  ///< the stop is never read

  std::string name() const override { return "agreement"; }
  std::string shows() const override {
    return "syntax measured: heads find the subject and the time; one head is slower, not incapable";
  }
  Needs needs() const override;
  Recipe recipe() const override;
  Accuracy accuracy() const override { return Accuracy::probe; }
  /// number: of the verb, in sentences where a noun of a modifier differs from the subject. tense: in all.
  std::vector<Probe> probes() const override;
  /// subject, time: where they stand, for the query before the verb.
  std::vector<HeadTarget> head_targets() const override;
  std::vector<Claim> claims() const override;
  std::vector<Rung> ladder() const override;
  double chance() const override { return 0.5; }
  std::vector<std::int64_t> delimiters() const override;
  std::optional<std::int64_t> start_token() const override;

 protected:
  void write(Batch& batch, std::int64_t row, Random& random) const override;
  void write_held_out(Batch& batch, std::int64_t row, std::uint64_t seed, std::int64_t index) const override;
  std::string spell(std::size_t stream, std::int64_t id) const override;
};

}  // namespace headlab
