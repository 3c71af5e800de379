// translate: an encoder–decoder between two small languages, word for word but in another order.
//   source  [time .5] NP verb NP [adverb .5] end,   NP = determiner, 0/1/2 adjectives (.4/.35/.25), noun
//   target  NP of the subject "ga" [adverb] NP of the object "wo" [time] verb end,   NP reversed
// A plural shows on the noun, and on the target's verb when the subject is one. Cross attention becomes
// alignment, divided among heads only in part.
#pragma once

#include "framework/data/task.h"

namespace headlab {

class TranslateTask final : public Task {
 public:
  static constexpr std::int64_t source_context = 12, context = 14;
  enum Target : int { words, nouns };

  std::string name() const override { return "translate"; }
  std::string shows() const override {
    return "cross attention as alignment of words; one head is slower, not incapable";
  }
  Needs needs() const override;
  Recipe recipe() const override;
  std::int64_t measured_steps() const override { return 400; }
  Accuracy accuracy() const override { return Accuracy::whole_sequence; }
  std::optional<Greedy> greedy() const override;
  /// At the query that predicts a word, the source word that it translates; all of them, and nouns alone.
  /// "ga", "wo" and the end mark have none.
  std::vector<HeadTarget> head_targets() const override;
  std::vector<Claim> claims() const override;
  std::vector<Rung> ladder() const override;
  double chance() const override { return 0; }
  std::vector<std::int64_t> delimiters() const override;
  std::optional<std::int64_t> start_token() const override;

 protected:
  void write(Batch& batch, std::int64_t row, Random& random) const override;
  void write_held_out(Batch& batch, std::int64_t row, std::uint64_t seed, std::int64_t index) const override;
  std::string spell(std::size_t stream, std::int64_t id) const override;
};

}  // namespace headlab
