// Training a model on a task: accumulation, evaluation, checkpoints, snapshots, exact resume.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "framework/data/task.h"
#include "framework/train/model.h"
#include "framework/train/observer.h"

namespace headlab {

/// Everything that fixes a training's numbers: kept in the run folder as config.json and in every checkpoint,
/// hashed by sweeps.
struct RunConfig {
  std::string task;  ///< a task's name, or the path of a text file
  Needs needs;
  Recipe recipe;
  std::uint64_t seed = 0;
  std::int64_t accumulation = 1;  ///< micro-batches a step; recipe.batch examples in all
};
nlohmann::json to_json(const RunConfig& config);
/// Error: a field is missing or has the wrong type (named).
RunConfig run_config_from_json(const nlohmann::json& json);

struct TrainOptions {
  std::filesystem::path run;          ///< run folder, already made; empty: nothing is written
  bool resume = false;                ///< continue from run/checkpoints/last.safetensors
  std::int64_t evaluate_every = 0;    ///< steps; 0: only at the end
  std::int64_t checkpoint_every = 0;  ///< steps; 0: at the end and when interrupted only
  std::int64_t log_every = 1;         ///< lines of metrics.jsonl
  bool snapshots = true;              ///< weights at ≤ 20 log-spaced steps, first and last included
  std::vector<Observer*> observers;   ///< not owned
  const std::atomic<bool>* stop =
      nullptr;  ///< when it turns true the step is finished, a checkpoint is saved, training ends
};

struct TrainResult {
  std::int64_t steps = 0;  ///< done in all, earlier ones of a resumed run included
  double train_loss = 0;   ///< of the last step
  Evaluation evaluation;   ///< of the final model on the held-out set (not when interrupted)
  std::int64_t parameters = 0;
  double seconds = 0;  ///< of this call
  double tokens_per_second = 0;
  bool interrupted = false;
  std::vector<double> losses;  ///< one a step of this call
};

/// Trains from the first step (initialises the model from the seed) or resumes. The same config gives the
/// same bits for any number of threads, repeats, and any number of interruptions. Errors: a loss that is not
/// finite (names step and loss; the last good checkpoint stays); a checkpoint of another config (names the
/// field); files that cannot be written.
TrainResult train(Model& model, const Task& task, const RunConfig& config, const TrainOptions& options = {});

}  // namespace headlab
