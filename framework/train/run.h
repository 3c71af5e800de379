// Tasks by name or path, and finished (or interrupted) runs by folder.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "framework/data/text_task.h"
#include "framework/train/catalogue.h"
#include "framework/train/run_config.h"

namespace headlab {

/// The catalogue's task of this name, else the text file at this path. Errors: neither (suggests the nearest
/// name), and those of TextTask::open().
std::shared_ptr<const Task> open_task(const Catalogue& catalogue, const std::string& name,
                                      const TextOptions& options = {});

/// Which weights of a run.
struct RunWeights {
  enum class Which { last, best, snapshot };
  Which which = Which::last;
  std::int64_t step = 0;  ///< of a snapshot
  static RunWeights last() { return {}; }
  static RunWeights best() { return {Which::best}; }
  static RunWeights snapshot(std::int64_t step) { return {Which::snapshot, step}; }
};

struct LoadedRun {
  RunConfig config;
  std::int64_t step = 0;                     ///< steps that the weights have had
  std::optional<double> best_loss;           ///< the lowest validation loss up to then
  std::optional<TextVocabulary> vocabulary;  ///< of a run over text
  std::shared_ptr<const Task> task;          ///< nullptr where it cannot be had: see task_error
  std::string task_error;                    ///< why not: the text file has gone or changed, no such task
  std::unique_ptr<Model> model;              ///< with those weights, in evaluation mode
};

/// Rebuilds the model of a run with its weights; heads that went off in training are off. `folder` may be a
/// file of weights instead, such as pruned.safetensors, whose own config counts. A run over text has its
/// vocabulary in the checkpoint and can be sampled from without the file. Errors: no run there; no such
/// weights; a checkpoint that cannot be read or does not fit config.json (names the field).
LoadedRun load_run(const std::filesystem::path& folder, const Catalogue& catalogue,
                   const RunWeights& weights = {});

}  // namespace headlab
