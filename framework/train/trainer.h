// Training a model on a task: accumulation, evaluation, checkpoints, snapshots, exact resume.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "framework/core/check.h"
#include "framework/data/task.h"
#include "framework/nn/module.h"
#include "framework/train/model.h"
#include "framework/train/observer.h"
#include "framework/train/run_config.h"

namespace headlab {

struct TrainOptions {
  /// Run folder; empty: nothing is written. Made when it is not there, and tried out before training. A new
  /// training is refused where there is a checkpoint or the config.json of another run.
  std::filesystem::path run;
  /// Continue from run/checkpoints/last.safetensors; from the start where a run has not got that far.
  bool resume = false;
  std::int64_t evaluate_every = 0;    ///< steps; 0: only at the end
  std::int64_t checkpoint_every = 0;  ///< steps; 0: at the end and when interrupted only
  std::int64_t log_every = 1;         ///< steps a line of metrics.jsonl; the last, evaluated and
                                      ///< observed ones have one
  bool snapshots = true;              ///< weights at ≤ 20 log-spaced steps, 0 and the last included
  std::vector<Observer*> observers;   ///< not owned
  /// When it turns true the step is finished, a checkpoint is saved, training ends.
  const std::atomic<bool>* stop = nullptr;
};

struct TrainResult {
  std::int64_t steps = 0;  ///< done in all, earlier ones of a resumed run included
  double train_loss = 0;   ///< of the last step of this call
  Evaluation evaluation;   ///< of the final model on the held-out set (not when interrupted)
  std::int64_t parameters = 0;
  double seconds = 0;  ///< of this call
  double tokens_per_second = 0;
  bool interrupted = false;
  std::vector<double> losses;  ///< one a step of this call
};

/// A training that cannot go on because its loss is not a finite number; the message names step and loss.
class NonFiniteLoss : public Error {
 public:
  using Error::Error;
};

/// Trains from the first step (initialises the model from the seed) or resumes. The same config gives the
/// same bits for any number of threads, repeats, and any number of interruptions. The best checkpoint is the
/// one of lowest validation loss among the evaluations. A step whose gradient is not finite changes nothing
/// and is reported as skipped. Afterwards the parameters live in one flat buffer. Trainings in different
/// threads do not disturb each other. Errors: settings that contradict each other, and a folder that cannot
/// be written, before the first step; a loss that is not finite (NonFiniteLoss; the last good
/// checkpoint stays); a checkpoint of another config or vocabulary (names the field); a write that fails.
TrainResult train(Model& model, const Task& task, const RunConfig& config, const TrainOptions& options = {});

/// Whether a recipe's weight decay applies to parameters of this role: never to biases and norm gains.
bool decays(Role role, const Recipe& recipe);
/// The paths of a model's parameters that it applies to.
std::vector<std::string> decayed_parameters(Model& model, const Recipe& recipe);

}  // namespace headlab
