// Models whose weights are set by hand: head 2 *is* a previous-token head. Beside them heads as they are
// drawn.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "framework/data/task.h"
#include "framework/nn/attention.h"
#include "models/decoder.h"

namespace headlab {

/// 22 random tokens of 19 kinds: 0 begins (with `start`), 1 separates. `partner` labels the only earlier
/// token that is 5 kinds further, where there is one.
class PlantTask final : public Task {
 public:
  static constexpr std::int64_t context = 22, kinds = 19, first_word = 2, words = kinds - first_word;

  std::string name() const override { return "plant"; }
  std::string shows() const override { return "nothing"; }
  Needs needs() const override {
    Needs n;
    n.streams = {{"token", kinds, 0.125}};
    n.readouts = {{"next", kinds}};
    n.context = context;
    n.d_model = context + 2 * kinds;
    n.heads = 4;
    n.head_size = context + kinds + 1;  // even, for whatever needs pairs
    n.position_std = 0.125;
    return n;
  }
  Recipe recipe() const override { return {}; }
  std::vector<HeadTarget> head_targets() const override { return {{"partner", AttentionSite::self, 0}}; }
  std::vector<std::int64_t> delimiters() const override { return {1}; }
  double chance() const override { return 0; }

 protected:
  void write(Batch& batch, std::int64_t row, Random& random) const override {
    std::int64_t* tokens = example_of(batch.inputs[0], row);
    for (std::int64_t t = 0; t < context; ++t) {
      tokens[t] = t % 5 == 2 && random.bernoulli(0.5) ? 1 : first_word + random.below(words);
      example_of(batch.targets, row)[t] = tokens[t];
      std::int64_t found = 0;
      for (std::int64_t j = 0; j < t; ++j) {
        if (tokens[t] == 1 || tokens[j] != partner(tokens[t])) continue;
        ++found;
        example_of(batch.head_targets[0], row)[t] = j;
      }
      if (found != 1) example_of(batch.head_targets[0], row)[t] = unscored;
    }
  }
  std::int64_t held_out_sequences() const override { return 128; }
  std::string spell(std::size_t, std::int64_t id) const override { return std::to_string(id); }

 public:
  static std::int64_t partner(std::int64_t token) { return first_word + (token - first_word + 5) % words; }
};

/// What a planted head does. Channels of the stream: positions, then tokens, then the token before (which a
/// `carry` head of an earlier layer writes there for `induct`).
enum class Plant {
  previous,
  next,
  self,
  back3,
  sink,
  fourth,
  delimiter,
  duplicate,
  partner,
  even,
  copy,
  anti_copy,
  carry,
  induct
};

class PlantedDecoder {
 public:
  static constexpr std::int64_t positions = 0, tokens = PlantTask::context,
                                before = PlantTask::context + PlantTask::kinds;

  /// Drawn from the seed; its tables hold one channel a position and a token.
  PlantedDecoder(const Needs& needs, std::uint64_t seed) : model_(std::make_unique<Decoder>(needs)) {
    initialise(*model_, seed);
    auto named = model_->parameters();
    for (const NamedParameter& p : named) {
      if (p.path != "embed.token.weight" && p.path != "embed.position.weight") continue;
      Array& table = p.parameter->tensor().change();
      table.zero();
      const std::int64_t first = p.path == "embed.token.weight" ? tokens : positions;
      for (std::int64_t i = 0; i < table.dim(0); ++i) table.data<float>()[i * table.dim(1) + first + i] = 1;
    }
    if (needs.tied_readout) return;
    Array& out = (*model_->readout->linear)->weight.tensor().change();
    out.zero();
    for (std::int64_t i = 0; i < out.dim(0); ++i) out.data<float>()[i * out.dim(1) + tokens + i] = 1;
  }
  Decoder& model() { return *model_; }
  /// Replaces the head's W_Q, W_K, W_V, W_O. Scores are large where it should look and W_O is small enough
  /// for the stream to stay what later layers read.
  void plant(std::int64_t layer, std::int64_t head, Plant what) {
    MultiHeadAttention& attn = *model_->blocks[static_cast<std::size_t>(layer)].attn;
    const std::int64_t d = attn.options().d_model, size = attn.options().d_k, heads = attn.heads();
    float* qkv = attn.qkv_weight->tensor().change().data<float>();
    float* out = (*attn.out)->weight.tensor().change().data<float>();
    const auto at = [&](std::int64_t matrix, std::int64_t row, std::int64_t column) -> float& {
      return qkv[((matrix * heads + head) * size + row) * d + column];
    };
    const auto write = [&](std::int64_t column, std::int64_t row) -> float& {
      return out[row * heads * size + head * size + column];
    };
    for (std::int64_t r = 0; r < size; ++r) {
      for (std::int64_t c = 0; c < d; ++c) {
        for (std::int64_t matrix = 0; matrix < 3; ++matrix) at(matrix, r, c) = 0;
        write(r, c) = 0;
      }
    }
    constexpr float strong = 3;
    const std::int64_t n = PlantTask::context;
    // Query i meets key i + offset in channel i.
    const auto look_at = [&](std::int64_t offset) {
      for (std::int64_t i = 0; i < n; ++i) {
        if (i + offset < 0 || i + offset >= n) continue;
        at(0, i, positions + i) = strong;
        at(1, i, positions + i + offset) = strong;
      }
    };
    // All queries ask for one channel of the stream: every position says so.
    const auto look_for = [&](std::int64_t channel) {
      for (std::int64_t i = 0; i < n; ++i) at(0, 0, positions + i) = strong;
      at(1, 0, channel) = strong;
    };
    // A token meets the word that many kinds further; separators ask for nothing.
    const auto look_for_token = [&](std::int64_t further) {
      for (std::int64_t t = 0; t < PlantTask::words; ++t) {
        at(0, t, tokens + PlantTask::first_word + t) = strong;
        at(1, t, tokens + PlantTask::first_word + (t + further) % PlantTask::words) = strong;
      }
    };
    const auto carry_tokens = [&](std::int64_t to, float sign) {
      for (std::int64_t t = 0; t < PlantTask::kinds; ++t) {
        at(2, t, tokens + t) = sign;
        write(t, to + t) = 1;
      }
    };
    switch (what) {
      case Plant::previous:
        return look_at(-1);
      case Plant::next:
        return look_at(1);
      case Plant::self:
        return look_at(0);
      case Plant::back3:
        return look_at(-3);
      case Plant::sink:
        return look_for(positions);
      case Plant::fourth:
        return look_for(positions + 4);
      case Plant::delimiter:
        return look_for(tokens + 1);
      case Plant::duplicate:
        look_for_token(0);
        for (std::int64_t i = 0; i < n; ++i) {  // but not itself
          at(0, PlantTask::kinds + i, positions + i) = strong;
          at(1, PlantTask::kinds + i, positions + i) = -strong;
        }
        return;
      case Plant::partner:
        return look_for_token(5);
      case Plant::even:
        return;
      case Plant::copy:
        return carry_tokens(tokens, 0.1F);
      case Plant::anti_copy:
        return carry_tokens(tokens, -0.1F);
      case Plant::carry:
        look_at(-1);
        return carry_tokens(before, 0.2F);
      case Plant::induct:
        for (std::int64_t t = 0; t < PlantTask::kinds; ++t) {
          at(0, t, tokens + t) = strong;
          at(1, t, before + t) = strong;
        }
        return;
    }
  }

 private:
  std::unique_ptr<Decoder> model_;
};

}  // namespace headlab
