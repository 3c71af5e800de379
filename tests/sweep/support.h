// Trainings and records small enough for tests of sweeps.
#pragma once

#include "framework/sweep/ablation.h"
#include "models/build.h"
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

}  // namespace headlab
