#include "framework/train/trainer.h"

#include <chrono>
#include <cmath>

#include <nlohmann/json.hpp>

#include "framework/autograd/backward.h"
#include "framework/core/check.h"
#include "framework/nn/step_context.h"
#include "framework/optim/adamw.h"
#include "framework/optim/clip.h"
#include "framework/optim/schedule.h"
#include "framework/train/evaluation.h"
#include "framework/train/heads_off.h"
#include "framework/train/run_writer.h"

namespace headlab {

namespace {

std::vector<OptimisedParameter> trained(Model& model, const Recipe& recipe) {
  std::vector<OptimisedParameter> list;
  for (const NamedParameter& named : model.parameters()) {
    list.push_back({named.path, named.parameter->tensor(), decays(named.parameter->role(), recipe)});
  }
  return list;
}

ScheduleOptions schedule_of(const Recipe& recipe) {
  ScheduleOptions options;
  options.peak = recipe.learning_rate;
  options.floor = recipe.learning_rate * recipe.floor_share;
  options.warm_up = recipe.warmup(recipe.steps);
  options.total = recipe.steps;
  switch (recipe.schedule) {
    case Recipe::Schedule::cosine:
      options.decay = Decay::cosine;
      break;
    case Recipe::Schedule::linear:
      options.decay = Decay::linear;
      break;
    case Recipe::Schedule::constant:
      options.decay = Decay::constant;
      break;
  }
  return options;
}

// All positions that the model reads: of an encoder–decoder both sides, of a decoder one of its streams.
std::int64_t positions(const Batch& batch, const Needs& needs) {
  if (batch.inputs.empty()) return 0;
  if (needs.architecture == Architecture::decoder) return batch.targets.dim(0) * batch.targets.dim(1);
  std::int64_t sum = 0;
  for (const Array& input : batch.inputs) sum += input.size();
  return sum;
}

const RunConfig& checked(const RunConfig& config, const Model& model, const TrainOptions& options) {
  validate(config);
  check_same(to_json(model.needs()), to_json(config.needs), "train", "the model", "the config");
  check(options.evaluate_every >= 0, "train", "evaluate_every {} is negative", options.evaluate_every);
  check(options.checkpoint_every >= 0, "train", "checkpoint_every {} is negative", options.checkpoint_every);
  check(options.log_every >= 1, "train", "log_every {} is below 1", options.log_every);
  return config;
}

class Training {
 public:
  Training(Model& model, const Task& task, const RunConfig& config, const TrainOptions& options)
      : model_(model),
        task_(task),
        config_(checked(config, model, options)),
        recipe_(config.recipe),
        options_(options),
        heads_off_(config.heads_off),
        schedule_(schedule_of(recipe_)),
        mode_(model, true),
        buffer_(trained(model, recipe_)),
        optimiser_(buffer_, {.beta1 = recipe_.beta1,
                             .beta2 = recipe_.beta2,
                             .eps = recipe_.epsilon,
                             .weight_decay = recipe_.weight_decay}),
        writer_(model, optimiser_, task, config, options) {}

  TrainResult run();

 private:
  StepReport step(std::int64_t index);
  double accumulate(std::int64_t index, StepReport& report);
  bool stopped() const { return options_.stop != nullptr && options_.stop->load(); }

  Model& model_;
  const Task& task_;
  const RunConfig& config_;
  const Recipe& recipe_;
  const TrainOptions& options_;
  HeadsOff heads_off_;
  Schedule schedule_;
  ModeScope mode_;
  ParameterBuffer buffer_;
  AdamW optimiser_;
  RunWriter writer_;
};

// Gradients of the mean over all scored pairs of the step's batch, whatever micro-batches it is cut into:
// each mean is weighted by its share of the pairs.
double Training::accumulate(std::int64_t index, StepReport& report) {
  const std::int64_t size = recipe_.batch / config_.accumulation;
  std::vector<Batch> batches;
  std::int64_t counted = 0;
  for (std::int64_t micro = 0; micro < config_.accumulation; ++micro) {
    batches.push_back(task_.batch(config_.seed, index, size, micro * size));
    counted += count_scored(batches.back());
    report.tokens += positions(batches.back(), model_.needs());
  }
  double sum = 0;
  for (std::int64_t micro = 0; micro < config_.accumulation; ++micro) {
    const Batch& batch = batches[static_cast<std::size_t>(micro)];
    const TrainingStep scope(
        {.seed = config_.seed, .step = index, .micro_step = micro, .first_example = micro * size});
    const TaskLoss result = forward_loss(model_, batch);
    const double loss = result.loss.item();
    if (!std::isfinite(loss)) {
      throw NonFiniteLoss(
          fmt::format("train: the loss of step {} is {}; stopped before the update", index + 1, loss));
    }
    const double share =
        counted == 0 ? 0 : static_cast<double>(result.counted) / static_cast<double>(counted);
    sum += share * loss;
    backward(result.loss, {.seed = Array::full(Shape{}, share, result.loss.dtype())});
  }
  return sum;
}

StepReport Training::step(std::int64_t index) {
  const profile::Scope scope("step");
  StepReport report{.step = index + 1, .steps = recipe_.steps};
  buffer_.clear_gradients();
  report.loss = accumulate(index, report);
  report.learning_rate = schedule_.rate(index);
  const Clipping clipping = clipping_of(buffer_, recipe_.clip);
  report.gradient_norm = clipping.norm;
  report.skipped = !clipping.finite;
  if (clipping.finite) optimiser_.step(report.learning_rate, clipping.scale);
  buffer_.clear_gradients();
  return report;
}

TrainResult Training::run() {
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  initialise(model_, config_.seed);
  std::int64_t done = writer_.start();
  const std::int64_t steps = recipe_.steps;
  TrainResult result;
  result.parameters = model_.parameter_count();
  heads_off_.on_start(model_, task_, done, steps);
  for (Observer* observer : options_.observers) observer->on_start(model_, task_, done, steps);

  std::int64_t tokens = 0;
  std::optional<Evaluation> evaluation;
  while (done < steps && !result.interrupted) {
    heads_off_.before_step(model_, done);
    for (Observer* observer : options_.observers) observer->before_step(model_, done);
    const StepReport report = step(done);
    ++done;
    tokens += report.tokens;
    result.losses.push_back(report.loss);
    result.train_loss = report.loss;
    for (Observer* observer : options_.observers) observer->on_step(model_, report);

    result.interrupted = done < steps && stopped();
    evaluation.reset();
    if (done == steps || (options_.evaluate_every > 0 && done % options_.evaluate_every == 0)) {
      evaluation = evaluate(model_, task_, config_.seed);
      for (Observer* observer : options_.observers) observer->on_evaluation(model_, done, *evaluation);
    }
    writer_.after_step(report, evaluation, done == steps || result.interrupted);
  }
  // Nothing was left to do: the run had been finished before.
  if (result.losses.empty()) switch_heads_off(model_, config_.heads_off, done);
  if (result.losses.empty()) evaluation = evaluate(model_, task_, config_.seed);
  if (!result.interrupted) result.evaluation = *evaluation;
  for (Observer* observer : options_.observers) observer->on_end(model_);

  result.steps = done;
  result.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  result.tokens_per_second = result.seconds > 0 ? static_cast<double>(tokens) / result.seconds : 0;
  return result;
}

}  // namespace

bool decays(Role role, const Recipe& recipe) {
  switch (role) {
    case Role::matrix:
      return recipe.decay_matrices;
    case Role::embedding:
      return recipe.decay_embeddings;
    case Role::position:
      return recipe.decay_positions;
    case Role::bias:
    case Role::norm:
      break;
  }
  return false;
}

std::vector<std::string> decayed_parameters(Model& model, const Recipe& recipe) {
  std::vector<std::string> paths;
  for (const NamedParameter& named : model.parameters()) {
    if (decays(named.parameter->role(), recipe)) paths.push_back(named.path);
  }
  return paths;
}

TrainResult train(Model& model, const Task& task, const RunConfig& config, const TrainOptions& options) {
  return Training(model, task, config, options).run();
}

}  // namespace headlab
