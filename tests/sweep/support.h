// Trainings and records small enough for tests of sweeps.
#pragma once

#include <filesystem>
#include <string>

#include <nlohmann/json.hpp>

#include "framework/sweep/ablation.h"
#include "models/build.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/tiny_task.h"

namespace headlab {

inline Catalogue tiny_catalogue() {
  Catalogue catalogue;
  catalogue.build_with(build_model);
  catalogue.add(std::make_shared<TinyTask>());
  return catalogue;
}

inline RunConfig tiny_config(std::int64_t heads = 1, std::uint64_t seed = 0) {
  const TinyTask task;
  RunConfig config{task.name(), task.needs(), task.recipe(), seed, 1};
  config.needs.heads = heads;
  config.recipe.batch = 3;
  config.recipe.steps = 5;
  return config;
}

inline RunRecord record_of(std::int64_t heads, std::uint64_t seed, double accuracy) {
  RunRecord record;
  record.heads = heads;
  record.seed = seed;
  record.name = plan_run(tiny_config(heads, seed), 0).name;
  record.accuracy = accuracy;
  record.loss = 1 - accuracy;
  record.steps = 5;
  return record;
}

/// Two head counts, three seeds, one run at a time.
inline AblationOptions tiny_options(const std::filesystem::path& folder, int workers = 1) {
  AblationOptions options;
  options.base = tiny_config();
  options.heads = {1, 4};
  options.seeds = 3;
  options.folder = folder;
  options.workers = workers;
  return options;
}

/// All that must not depend on how the work was done, as text: every bit of every number shows.
inline std::string numbers(const AblationResult& result) {
  std::string text;
  for (const AblationLevel& level : result.levels) {
    for (const auto& run : level.runs) {
      nlohmann::json json = run ? to_json(*run) : nlohmann::json();
      json.erase("seconds");
      text += json.dump() + "\n";
    }
  }
  if (result.knockout) {
    for (const KnockoutLoss& loss : result.knockout->heads) text += nlohmann::json(loss.readouts).dump();
  }
  return text;
}

inline std::string undisturbed_ablation() {
  const TemporaryFolder folder;
  return numbers(run_ablation(TinyTask(), tiny_catalogue(), tiny_options(folder.path())));
}

}  // namespace headlab
