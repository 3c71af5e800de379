// What tests that train share: a small task, settings for it, and a training in one call.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "framework/train/trainer.h"
#include "models/build.h"
#include "tests/support/errors.h"
#include "tests/support/goldens.h"
#include "tests/support/tiny_task.h"

namespace headlab {

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
