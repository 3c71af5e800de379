#include "framework/command/training_options.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "framework/command/memory.h"
#include "framework/core/check.h"
#include "framework/train/run.h"

namespace headlab {

namespace {

constexpr std::int64_t billion = 1'000'000'000;

/// warmup_steps belong to the recipe's own number of steps.
void set_steps(Recipe& recipe, std::int64_t steps) {
  if (recipe.warmup_steps > 0) {
    const double share = static_cast<double>(recipe.warmup_steps) / static_cast<double>(recipe.steps);
    recipe.warmup_steps =
        std::clamp<std::int64_t>(std::llround(share * static_cast<double>(steps)), 1, steps);
  }
  recipe.steps = steps;
}

void set_d_model(Needs& needs, std::int64_t d_model) {
  needs.mlp = static_cast<std::int64_t>(std::llround(
      static_cast<double>(needs.mlp) / static_cast<double>(needs.d_model) * static_cast<double>(d_model)));
  needs.d_model = d_model;
}

}  // namespace

void TrainingOptions::declare_model(CommandLine& line, bool with_heads) {
  const std::string task = "the task's";
  if (with_heads) line.whole("--heads", heads, heads_range, "heads in each attention layer", task);
  line.whole("--d-model", d_model, {1, billion}, "width; heads share it, so each has d-model / heads", task)
      .whole("--layers", layers, {1, 1024}, "attention layers, in each stack", task)
      .real("--dropout", dropout, {0, 1}, "share of activations dropped in training", "0")
      .whole("--context", context, {1, 1'000'000}, "tokens that a model of a text file sees at once", "64")
      .flag("--bytes", bytes, "the text file's units are bytes, not characters");
}

void TrainingOptions::declare_training(CommandLine& line) {
  const std::string task = "the task's";
  line.whole("--steps", steps, {1, billion}, "training steps", task)
      .whole("--batch", batch, {1, 1'000'000}, "examples in a step", task)
      .real("--lr", learning_rate, {.min = 0, .max = 100, .above_min = true}, "peak learning rate", task)
      .whole("--accumulation", accumulation, {1, 1'000'000},
             "pieces that a batch is cut into, to save memory; must divide it", "1");
}

std::optional<std::string> TrainingOptions::first_given() const {
  const std::array<std::pair<const char*, bool>, 10> given{{{"--heads", heads.has_value()},
                                                            {"--d-model", d_model.has_value()},
                                                            {"--layers", layers.has_value()},
                                                            {"--dropout", dropout.has_value()},
                                                            {"--context", context.has_value()},
                                                            {"--bytes", bytes},
                                                            {"--steps", steps.has_value()},
                                                            {"--batch", batch.has_value()},
                                                            {"--lr", learning_rate.has_value()},
                                                            {"--accumulation", accumulation.has_value()}}};
  for (const auto& [name, is_given] : given) {
    if (is_given) return name;
  }
  return std::nullopt;
}

PlannedTraining plan_training(const Catalogue& catalogue, const std::string& name,
                              const TrainingOptions& options, const std::vector<std::int64_t>& heads,
                              std::uint64_t seed) {
  return as_usage([&] {
    TextOptions text;
    text.context = options.context.value_or(text.context);
    if (options.bytes) text.unit = TextUnit::byte;
    PlannedTraining plan{open_task(catalogue, name, text), {}};
    const bool is_text = plan.task->vocabulary() != nullptr;
    check(is_text || !options.context, "--context", "only for text files; {} has its own", name);
    check(is_text || !options.bytes, "--bytes", "only for text files; {} has its own tokens", name);

    RunConfig& config = plan.config;
    config.task = name;
    config.seed = seed;
    config.needs = plan.task->needs();
    config.recipe = plan.task->recipe();
    if (options.d_model) set_d_model(config.needs, *options.d_model);
    config.needs.heads = options.heads.value_or(config.needs.heads);
    config.needs.layers = options.layers.value_or(config.needs.layers);
    config.needs.dropout = options.dropout.value_or(config.needs.dropout);
    if (options.steps) set_steps(config.recipe, *options.steps);
    config.recipe.batch = options.batch.value_or(config.recipe.batch);
    config.recipe.learning_rate = options.learning_rate.value_or(config.recipe.learning_rate);
    config.accumulation = options.accumulation.value_or(config.accumulation);

    const std::vector<std::int64_t> counts =
        heads.empty() ? std::vector<std::int64_t>{config.needs.heads} : heads;
    check_divisors("--heads", counts, "--d-model", config.needs.d_model);
    check_divisors("--accumulation", std::vector<std::int64_t>{config.accumulation}, "--batch",
                   config.recipe.batch);
    validate(config);
    check_memory(config);
    return plan;
  });
}

void check_memory(const RunConfig& config) {
  const Needs& needs = config.needs;
  // Each parameter with its gradient and two moments.
  const double parameters = needs.parameters() * 16;
  const Needs base = [&] {
    Needs small = needs;
    small.layers = 1;
    return small;
  }();
  const bool deep = needs.layers > 1 && base.parameters() * 16 < machine_memory();
  MemoryEstimate estimate;
  estimate.add({}, parameters, 1);
  check_fits(deep ? "--layers" : "--d-model", estimate);
  // What a forward pass keeps for the backward pass, roughly: twelve arrays of the width of the model and
  // three of the MLP's in each layer, three of logits.
  const std::int64_t examples = config.recipe.batch / config.accumulation;
  const std::int64_t positions = needs.context + needs.source_context;
  estimate.add({examples, positions, needs.layers, needs.d_model}, 12)
      .add({examples, positions, needs.layers, needs.mlp}, 3)
      .add({examples, positions, needs.logits()}, 3);
  check_fits("--batch", estimate);
}

std::string result_name(const Catalogue& catalogue, const std::string& name) {
  if (catalogue.find(name)) return name;
  const std::string stem = std::filesystem::path(name).stem().string();
  return stem.empty() || stem == "." || stem == ".." ? "text" : stem;
}

}  // namespace headlab
