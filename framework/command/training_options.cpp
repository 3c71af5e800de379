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

const TrainingNumber& number_named(std::string_view name) {
  const std::vector<TrainingNumber>& numbers = training_numbers();
  return *std::find_if(numbers.begin(), numbers.end(),
                       [name](const TrainingNumber& number) { return number.name == name; });
}

}  // namespace

const std::vector<TrainingNumber>& training_numbers() {
  using Options = TrainingOptions;
  static const std::vector<TrainingNumber> numbers = {
      {.name = "lr", .real = &Options::learning_rate, .real_range = learning_rate_range},
      {.name = "d-model", .whole = &Options::d_model, .whole_range = {1, billion}},
      {.name = "d-head", .whole = &Options::head_size, .whole_range = {1, 1'000'000}},
      {.name = "layers", .whole = &Options::layers, .whole_range = {1, 1024}},
      {.name = "steps", .whole = &Options::steps, .whole_range = {1, billion}},
      {.name = "batch", .whole = &Options::batch, .whole_range = {1, 1'000'000}},
      {.name = "context", .whole = &Options::context, .whole_range = {1, 1'000'000}},
      {.name = "dropout", .real = &Options::dropout, .real_range = {0, 1}},
      {.name = "accumulation", .whole = &Options::accumulation, .whole_range = {1, 1'000'000}}};
  return numbers;
}

void TrainingOptions::declare_model(CommandLine& line, bool with_heads) {
  const std::string task = "the task's";
  if (with_heads) line.whole("--heads", heads, heads_range, "heads in each attention layer", task);
  const auto whole = [&](const char* name, std::optional<std::int64_t>& into, std::string help,
                         const std::string& otherwise) {
    line.whole(fmt::format("--{}", name), into, number_named(name).whole_range, std::move(help), otherwise);
  };
  whole("d-model", d_model, "width; heads share it, so each has d-model / heads", task);
  whole("d-head", head_size, "numbers in a head, apart from d-model", "d-model / heads");
  whole("layers", layers, "attention layers, in each stack", task);
  line.real("--dropout", dropout, number_named("dropout").real_range,
            "share of activations dropped in training", "0");
  whole("context", context, "tokens that a model of a text file sees at once", "64");
  line.flag("--bytes", bytes, "the text file's units are bytes, not characters");
}

void TrainingOptions::declare_training(CommandLine& line) {
  const std::string task = "the task's";
  line.whole("--steps", steps, number_named("steps").whole_range, "training steps", task)
      .whole("--batch", batch, number_named("batch").whole_range, "examples in a step", task)
      .real("--lr", learning_rate, learning_rate_range, "peak learning rate", task)
      .whole("--accumulation", accumulation, number_named("accumulation").whole_range,
             "pieces that a batch is cut into, to save memory; must divide it", "1");
}

std::optional<std::string> TrainingOptions::first_given() const {
  const std::array<std::pair<const char*, bool>, 11> given{{{"--heads", heads.has_value()},
                                                            {"--d-model", d_model.has_value()},
                                                            {"--d-head", head_size.has_value()},
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
    config.needs.head_size = options.head_size.value_or(config.needs.head_size);
    config.needs.layers = options.layers.value_or(config.needs.layers);
    config.needs.dropout = options.dropout.value_or(config.needs.dropout);
    if (options.steps) set_steps(config.recipe, *options.steps);
    config.recipe.batch = options.batch.value_or(config.recipe.batch);
    config.recipe.learning_rate = options.learning_rate.value_or(config.recipe.learning_rate);
    config.accumulation = options.accumulation.value_or(config.accumulation);

    std::vector<std::int64_t> counts = heads;
    if (heads.empty() && config.needs.head_size == 0) counts = {config.needs.heads};
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
  const bool large_heads = needs.head_size * needs.heads > needs.d_model;
  check_fits(deep ? "--layers" : large_heads ? "--d-head" : "--d-model", estimate);
  // What a forward pass keeps for the backward pass, roughly: eight arrays of the width of the model, four
  // of that of all heads and three of the MLP's in each layer, three of logits.
  const std::int64_t examples = config.recipe.batch / config.accumulation;
  const std::int64_t positions = needs.context + needs.source_context;
  estimate.add({examples, positions, needs.layers, needs.d_model}, 8)
      .add({examples, positions, needs.layers, needs.heads, needs.each_head()}, 4)
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
