// text: the next character of any text. The first nine tenths are for training, in windows drawn at random;
// the last tenth is held out, in windows side by side. The model and the recipe are nanoGPT's for a laptop
// CPU (github.com/karpathy/nanoGPT).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "framework/data/task.h"
#include "framework/data/text_vocabulary.h"

namespace headlab {

struct TextOptions {
  TextUnit unit = TextUnit::code_point;
  std::int64_t context = 64;
  /// Of an earlier run; `unit` is then its unit. A text with other characters is refused.
  std::optional<TextVocabulary> vocabulary = std::nullopt;
};

class TextTask final : public Task {
 public:
  /// Errors, naming the path: it cannot be read (with the system's reason), or any of the errors below.
  static TextTask open(const std::string& path, const TextOptions& options = {});
  /// Errors, naming `where`: context < 1; an empty text; not UTF-8; units that a given vocabulary lacks; a
  /// last tenth without a whole window and its next token, which takes 10·context + 1 tokens.
  explicit TextTask(std::string_view text, const TextOptions& options = {}, std::string_view where = "text");

  std::string name() const override { return "text"; }
  std::string shows() const override { return "a small GPT on a text of your own"; }
  Needs needs() const override;
  Recipe recipe() const override;
  /// Always guessing the commonest token of the training part.
  double chance() const override { return chance_; }
  /// Blanks and punctuation.
  std::vector<std::int64_t> delimiters() const override;
  const TextVocabulary* vocabulary() const override { return &vocabulary_; }

  /// Tokens for training and held out.
  std::int64_t training_tokens() const { return training_; }
  std::int64_t held_out_tokens() const { return static_cast<std::int64_t>(tokens_.size()) - training_; }

 protected:
  /// A window that starts anywhere in the training part; every position predicts the next token.
  void write(Batch& batch, std::int64_t row, Random& random) const override;
  /// Window `index` of the last tenth, whatever the seed. A rest shorter than a window is left out.
  void write_held_out(Batch& batch, std::int64_t row, std::uint64_t seed, std::int64_t index) const override;
  std::int64_t held_out_sequences() const override { return (held_out_tokens() - 1) / context_; }
  std::string spell(std::size_t, std::int64_t id) const override { return vocabulary_.visible(id); }

 private:
  void write_window(Batch& batch, std::int64_t row, std::int64_t begin) const;

  std::int64_t context_;
  TextVocabulary vocabulary_;
  std::vector<std::int64_t> tokens_;
  std::int64_t training_;
  double chance_;
};

}  // namespace headlab
