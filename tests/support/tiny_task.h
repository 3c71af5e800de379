// A task small enough to be trained in tests.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "framework/data/task.h"

namespace headlab {

/// 5 tokens of 11 kinds. Which was the one before, and is this one odd: two read-outs of different sizes.
/// `on_write` is called for every training or held-out example; with another `shift` the first read-out asks
/// for a token further back.
class TinyTask : public Task {
 public:
  static constexpr std::int64_t length = 5, kinds = 11, sequences = 37;

  explicit TinyTask(std::function<void()> on_write = {}, std::int64_t shift = 1)
      : on_write_(std::move(on_write)), shift_(shift) {}

  std::string name() const override { return "tiny"; }
  std::string shows() const override { return "nothing"; }
  Needs needs() const override {
    Needs needs;
    needs.streams = {{"token", kinds, 0.5}};
    needs.readouts = {{"before", kinds}, {"odd", 2}};
    needs.context = length;
    needs.d_model = 12;
    needs.heads = 3;
    needs.mlp = 13;
    needs.position_std = 0.5;
    return needs;
  }
  Recipe recipe() const override {
    Recipe recipe;
    recipe.batch = 6;
    recipe.steps = 20;
    recipe.learning_rate = 1e-2;
    recipe.weight_decay = 0.1;
    return recipe;
  }
  std::vector<HeadTarget> head_targets() const override { return {{"before", AttentionSite::self, 0}}; }
  std::vector<Rung> ladder() const override { return {{1, 0.5}}; }
  double chance() const override { return 0.3; }

 protected:
  void write(Batch& batch, std::int64_t row, Random& random) const override {
    if (on_write_) on_write_();
    std::int64_t* tokens = example_of(batch.inputs[0], row);
    std::int64_t* targets = example_of(batch.targets, row);
    for (std::int64_t t = 0; t < length; ++t) {
      tokens[t] = random.below(kinds);
      targets[2 * t + 1] = tokens[t] % 2;
      if (t < shift_) continue;
      targets[2 * t] = tokens[t - shift_];
      example_of(batch.head_targets[0], row)[t] = t - shift_;
    }
  }
  std::int64_t held_out_sequences() const override { return sequences; }
  std::string spell(std::size_t, std::int64_t id) const override { return std::to_string(id); }

 private:
  std::function<void()> on_write_;
  std::int64_t shift_;
};

}  // namespace headlab
