// What a training writes to its run folder, and reads from it to go on.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "framework/files/run_folder.h"
#include "framework/optim/optimiser.h"
#include "framework/train/checkpoint.h"
#include "framework/train/metrics_log.h"
#include "framework/train/trainer.h"

namespace headlab {

/// Without a folder every call does nothing. Errors: those of train().
class RunWriter {
 public:
  /// Makes or checks the folder. `model` and `optimiser` must outlive the writer.
  RunWriter(Model& model, Optimiser& optimiser, const Task& task, const RunConfig& config,
            const TrainOptions& options);

  /// Loads the last checkpoint when resuming; returns the steps that are done.
  std::int64_t start();
  /// After a step: the line of metrics, the best checkpoint where the evaluation is the best so far, the
  /// snapshot and the last checkpoint where they are due. `last`: of this call.
  void after_step(const StepReport& report, const std::optional<Evaluation>& evaluation, bool last);

 private:
  Checkpoint checkpoint(std::int64_t step, bool with_optimiser) const;
  void snapshot(std::int64_t step);

  Model& model_;
  Optimiser& optimiser_;
  const RunConfig& config_;
  const TrainOptions& options_;
  std::optional<TextVocabulary> vocabulary_;
  std::vector<std::int64_t> snapshot_steps_;
  std::optional<RunFolder> folder_;
  std::optional<MetricsLog> log_;
  std::optional<double> best_loss_;
  std::int64_t best_step_ = 0;
};

}  // namespace headlab
