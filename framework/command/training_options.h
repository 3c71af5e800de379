// Options about the model and its training, shared by the sub-commands that train.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "framework/command/options.h"
#include "framework/train/catalogue.h"
#include "framework/train/run_config.h"

namespace headlab {

/// What is not given is as the task says.
struct TrainingOptions {
  std::optional<std::int64_t> heads, d_model, head_size, layers, context, batch, steps, accumulation;
  std::optional<double> learning_rate, dropout;
  bool bytes = false;

  void declare_model(CommandLine& line, bool with_heads);
  void declare_training(CommandLine& line);
  /// Whether any option is given that changes what is trained; the first such, "--steps".
  std::optional<std::string> first_given() const;
};

/// A number among the options, for a command that takes several values of one: "lr" or "--lr".
struct TrainingNumber {
  std::string name;  ///< "lr"
  std::optional<std::int64_t> TrainingOptions::*whole = nullptr;
  WholeRange whole_range = {};
  std::optional<double> TrainingOptions::*real = nullptr;  ///< where `whole` is nullptr
  RealRange real_range = {};
};
/// All of them but the number of heads.
const std::vector<TrainingNumber>& training_numbers();

constexpr WholeRange heads_range{1, 1024};
constexpr RealRange learning_rate_range{.min = 0, .max = 100, .above_min = true};

struct PlannedTraining {
  std::shared_ptr<const Task> task;
  RunConfig config;
};

/// The task of this name, or the text file at this path, with the options applied: the MLP grows with d_model
/// and warm-up with the steps. `heads`: the counts that will share d_model, checked against it; empty: one,
/// as the task or --heads says, unless heads have a size of their own. Errors (UsageError): no such task or
/// file; options that do not fit the task or each other; a model that the machine's memory cannot hold.
PlannedTraining plan_training(const Catalogue& catalogue, const std::string& name,
                              const TrainingOptions& options, const std::vector<std::int64_t>& heads,
                              std::uint64_t seed);

/// Refuses a model and batch that cannot fit into memory, before anything is allocated. Error names the
/// option to make smaller.
void check_memory(const RunConfig& config);

/// A folder name for results: the task's name, or a file's without folders and ending.
std::string result_name(const Catalogue& catalogue, const std::string& name);

}  // namespace headlab
