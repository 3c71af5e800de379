#include "framework/data/text_task.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <system_error>

#include "framework/core/check.h"

namespace headlab {

namespace {

std::string read_file(const std::string& path) {
  const auto reason = [] { return std::generic_category().message(errno); };
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"), &std::fclose);
  if (!file) fail(path, "cannot open the text: {}", reason());
  std::string text;
  std::vector<char> block(1 << 16);
  while (const std::size_t got = std::fread(block.data(), 1, block.size(), file.get())) {
    text.append(block.data(), got);
  }
  if (std::ferror(file.get()) != 0) fail(path, "cannot read the text: {}", reason());
  return text;
}

}  // namespace

TextTask TextTask::open(const std::string& path, const TextOptions& options) {
  return TextTask(read_file(path), options, path);
}

TextTask::TextTask(std::string_view text, const TextOptions& options, std::string_view where)
    : context_(options.context),
      vocabulary_(options.vocabulary ? *options.vocabulary : TextVocabulary::of(text, options.unit, where)),
      tokens_(vocabulary_.encode(text, where)) {
  check(context_ >= 1, where, "context {} is below 1", context_);
  const auto count = static_cast<std::int64_t>(tokens_.size());
  check(count > 0, where, "the text is empty");
  training_ = count - (count + 9) / 10;
  check(held_out_tokens() > context_, where,
        "{} tokens are too few for context {}: the last tenth has {} and must have more than the context",
        count, context_, held_out_tokens());

  std::vector<std::int64_t> counts(static_cast<std::size_t>(vocabulary_.size()));
  std::int64_t most = 0;
  for (std::int64_t i = 0; i < training_; ++i) {
    const auto id = static_cast<std::size_t>(tokens_[static_cast<std::size_t>(i)]);
    most = std::max(most, ++counts[id]);
  }
  chance_ = static_cast<double>(most) / static_cast<double>(training_);
}

// With V units: V·128 tied table + 64·128 positions + 4·(4·128² attention + 8·128² MLP + 2·128 norms) + 128
// final norm; 804 096 for V = 65.
Needs TextTask::needs() const {
  Needs needs;
  needs.streams = {{"token", vocabulary_.size(), 0.02}};
  needs.readouts = {{"next", vocabulary_.size()}};
  needs.context = context_;
  needs.layers = 4;
  needs.d_model = 128;
  needs.heads = 4;
  needs.mlp = 4 * needs.d_model;
  needs.activation = Needs::Activation::gelu_tanh;
  needs.mlp_bias = false;
  needs.norm_bias = false;
  needs.positions = Needs::Positions::learned;
  needs.position_std = 0.02;
  needs.weights = Needs::Weights::fixed;
  needs.weight_std = 0.02;
  needs.smaller_residual_weights = true;
  needs.tied_readout = true;
  needs.readout_bias = false;
  return needs;
}

Recipe TextTask::recipe() const {
  Recipe recipe;
  recipe.batch = 12;
  recipe.steps = 2000;
  recipe.learning_rate = 1e-3;
  recipe.warmup_steps = 100;
  recipe.floor_share = 0.1;
  recipe.beta2 = 0.99;
  recipe.weight_decay = 0.1;
  return recipe;
}

std::vector<std::int64_t> TextTask::delimiters() const {
  std::vector<std::int64_t> ids;
  for (const char c : std::string_view("\t\n !\"'(),-.:;?[]")) {
    const std::int64_t id = vocabulary_.find(std::string_view(&c, 1));
    if (id >= 0) ids.push_back(id);
  }
  return ids;
}

void TextTask::write(Batch& batch, std::int64_t row, Random& random) const {
  write_window(batch, row, random.below(training_ - context_));
}

void TextTask::write_held_out(Batch& batch, std::int64_t row, std::uint64_t, std::int64_t index) const {
  write_window(batch, row, training_ + index * context_);
}

void TextTask::write_window(Batch& batch, std::int64_t row, std::int64_t begin) const {
  const std::int64_t* from = tokens_.data() + begin;
  std::copy_n(from, context_, example_of(batch.inputs[0], row));
  std::copy_n(from + 1, context_, example_of(batch.targets, row));
}

}  // namespace headlab
