// A task and records small enough for tests of sweeps.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "framework/data/task.h"
#include "framework/sweep/ablation.h"
#include "models/build.h"

namespace headlab {

/// Say the token before: 5 tokens, 7 positions. `on_write` is called for every training or held-out example.
class TinyTask final : public Task {
 public:
  explicit TinyTask(std::function<void()> on_write = {}, std::int64_t shift = 1)
      : on_write_(std::move(on_write)), shift_(shift) {}

  std::string name() const override { return "tiny"; }
  std::string shows() const override { return "tests"; }
  Needs needs() const override {
    Needs needs;
    needs.streams = {{"token", 5, 0.5}};
    needs.readouts = {{"back", 5}};
    needs.context = 7;
    needs.d_model = 8;
    needs.heads = 1;
    needs.position_std = 0.5;
    return needs;
  }
  Recipe recipe() const override {
    Recipe recipe;
    recipe.batch = 3;
    recipe.steps = 5;
    recipe.learning_rate = 0.01;
    return recipe;
  }
  std::vector<HeadTarget> head_targets() const override { return {{"t-1", AttentionSite::self, 0}}; }
  std::vector<Rung> ladder() const override { return {{1, 0.5}}; }
  double chance() const override { return 0.2; }

 protected:
  void write(Batch& batch, std::int64_t row, Random& random) const override {
    if (on_write_) on_write_();
    std::int64_t* x = example_of(batch.inputs[0], row);
    for (std::int64_t t = 0; t < 7; ++t) x[t] = random.below(5);
    for (std::int64_t t = shift_; t < 7; ++t) {
      example_of(batch.targets, row)[t] = x[t - shift_];
      example_of(batch.head_targets[0], row)[t] = t - shift_;
    }
  }
  std::int64_t held_out_sequences() const override { return 6; }
  std::string spell(std::size_t, std::int64_t id) const override { return std::string(1, "abcde"[id]); }

 private:
  std::function<void()> on_write_;
  std::int64_t shift_;
};

inline Catalogue tiny_catalogue() {
  Catalogue catalogue;
  catalogue.build_with(build_model);
  catalogue.add(std::make_shared<TinyTask>());
  return catalogue;
}

inline RunConfig tiny_config(std::int64_t heads = 1, std::uint64_t seed = 0) {
  const TinyTask task;
  RunConfig config{task.name(), task.needs(), task.recipe(), seed, 1};
  config.needs.heads = heads;
  return config;
}

inline RunRecord record_of(std::int64_t heads, std::uint64_t seed, double accuracy) {
  RunRecord record;
  record.heads = heads;
  record.seed = seed;
  record.name = plan_run(tiny_config(heads, seed), 0).name;
  record.accuracy = accuracy;
  record.loss = 1 - accuracy;
  record.steps = 5;
  return record;
}

}  // namespace headlab
