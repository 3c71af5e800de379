#include "framework/train/run.h"

#include <vector>

#include <nlohmann/json.hpp>

#include "framework/core/check.h"
#include "framework/core/suggest.h"
#include "framework/files/run_folder.h"
#include "framework/train/checkpoint.h"
#include "framework/train/heads_off.h"

namespace headlab {

namespace {

/// Where a file of weights is given in place of a run's folder.
bool is_weights(const std::filesystem::path& path) {
  std::error_code error;
  return std::filesystem::is_regular_file(path, error);
}

std::filesystem::path path_of(const RunFolder& run, const RunWeights& weights) {
  switch (weights.which) {
    case RunWeights::Which::best:
      return run.best_checkpoint();
    case RunWeights::Which::snapshot:
      return run.snapshot(weights.step);
    case RunWeights::Which::last:
      break;
  }
  return run.last_checkpoint();
}

}  // namespace

std::shared_ptr<const Task> open_task(const Catalogue& catalogue, const std::string& name,
                                      const TextOptions& options) {
  if (auto task = catalogue.find(name)) return task;
  std::error_code error;
  const bool looks_like_path = name.find_first_of("/.") != std::string::npos;
  if (looks_like_path || std::filesystem::exists(name, error)) {
    return std::make_shared<TextTask>(TextTask::open(name, options));
  }
  std::vector<std::string> names;
  for (const auto& task : catalogue.tasks()) names.push_back(task->name());
  fail("task", "there is no task and no text file '{}'{}", name, did_you_mean(name, names));
}

LoadedRun load_run(const std::filesystem::path& folder, const Catalogue& catalogue,
                   const RunWeights& weights) {
  Checkpoint checkpoint;
  if (is_weights(folder)) {
    checkpoint = load_checkpoint(folder);
  } else {
    const RunFolder run = RunFolder::open(folder);
    const std::filesystem::path path = path_of(run, weights);
    std::error_code error;
    check(std::filesystem::exists(path, error), folder.string(),
          "has no {} yet: the run was stopped before it was saved", path.filename().string());
    checkpoint = load_checkpoint(path);
    check_same(to_json(checkpoint.config),
               to_json(run_config_from_json(run.read_config(), run.config().string())), folder.string(),
               path.filename().string(), "config.json");
  }

  LoadedRun loaded;
  loaded.config = checkpoint.config;
  loaded.step = checkpoint.step;
  loaded.best_loss = checkpoint.best_loss;
  loaded.vocabulary = checkpoint.vocabulary;
  try {
    TextOptions options;
    options.context = checkpoint.config.needs.context;
    options.vocabulary = checkpoint.vocabulary;
    loaded.task = open_task(catalogue, checkpoint.config.task, options);
  } catch (const Error& reason) {
    loaded.task_error = reason.what();
  }
  loaded.model = catalogue.build(checkpoint.config.needs);
  loaded.model->load_state(checkpoint.parameters);
  switch_heads_off(*loaded.model, checkpoint.config.heads_off, checkpoint.step);
  loaded.model->eval();
  return loaded;
}

}  // namespace headlab
