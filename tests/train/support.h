// What the tests of this room share: a small task, small settings, and a training in one call.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "framework/train/trainer.h"
#include "models/build.h"
#include "tests/support/errors.h"
#include "tests/support/goldens.h"

namespace headlab {

/// 5 tokens of 11 kinds. Which was the one before, and is this one odd: two read-outs of different sizes.
class TinyTask : public Task {
 public:
  static constexpr std::int64_t length = 5, kinds = 11, sequences = 37;

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
  double chance() const override { return 0.3; }

 protected:
  void write(Batch& batch, std::int64_t row, Random& random) const override {
    std::int64_t* tokens = example_of(batch.inputs[0], row);
    std::int64_t* targets = example_of(batch.targets, row);
    for (std::int64_t t = 0; t < length; ++t) {
      tokens[t] = random.below(kinds);
      if (t > 0) targets[2 * t] = tokens[t - 1];
      targets[2 * t + 1] = tokens[t] % 2;
    }
  }
  std::int64_t held_out_sequences() const override { return sequences; }
  std::string spell(std::size_t, std::int64_t id) const override { return std::to_string(id); }
};

inline RunConfig config_of(const Task& task, std::int64_t steps, std::uint64_t seed = 3) {
  RunConfig config;
  config.task = task.name();
  config.needs = task.needs();
  config.recipe = task.recipe();
  config.recipe.steps = steps;
  config.seed = seed;
  return config;
}

struct Trained {
  std::unique_ptr<Model> model;
  TrainResult result;
};

inline Trained train_new(const Task& task, const RunConfig& config, const TrainOptions& options = {}) {
  Trained trained{build_model(config.needs), {}};
  trained.result = train(*trained.model, task, config, options);
  return trained;
}

/// The numbers of both, bit for bit.
inline void expect_same_parameters(Model& a, Model& b) {
  const auto state_a = a.state();
  const auto state_b = b.state();
  ASSERT_EQ(state_a.size(), state_b.size());
  for (const auto& entry : state_a) {
    EXPECT_TRUE(same_bits(entry.second, state_b.at(entry.first))) << entry.first;
  }
}

/// Asks a training to end after a number of steps.
class StopAfter : public Observer {
 public:
  explicit StopAfter(std::int64_t step) : step_(step) {}
  void on_step(Model&, const StepReport& report) override {
    if (report.step == step_) stop = true;
  }
  std::atomic<bool> stop{false};

 private:
  std::int64_t step_;
};

/// Options for a training that ends after `observer`'s step.
inline TrainOptions stopping(const std::filesystem::path& run, StopAfter& observer) {
  TrainOptions options;
  options.run = run;
  options.observers = {&observer};
  options.stop = &observer.stop;
  return options;
}

}  // namespace headlab
