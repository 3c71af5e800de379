// Runs of a grid that do no training, for tests of the grid itself.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "framework/sweep/grid.h"
#include "tests/sweep/support.h"

namespace headlab {

inline std::vector<PlannedRun> planned(std::int64_t seeds = 5) {
  std::vector<PlannedRun> runs;
  for (std::int64_t seed = 0; seed < seeds; ++seed) {
    runs.push_back(plan_run(tiny_config(1, static_cast<std::uint64_t>(seed)), 0));
  }
  return runs;
}

inline RunRecord result_of(const PlannedRun& run) {
  return record_of(1, run.config.seed, 1.0 / static_cast<double>(run.config.seed + 3));
}

inline std::vector<std::string> texts(const GridResult& result) {
  std::vector<std::string> list;
  for (const auto& record : result.records) list.push_back(record ? to_json(*record).dump() : "");
  return list;
}

/// What is expected of a grid that ran undisturbed.
inline std::vector<std::string> undisturbed(const std::vector<PlannedRun>& runs) {
  std::vector<std::string> list;
  for (const PlannedRun& run : runs) list.push_back(to_json(result_of(run)).dump());
  return list;
}

inline GridResult quick(const std::vector<PlannedRun>& runs, const std::filesystem::path& folder,
                        int workers = 1) {
  return run_grid(runs, [](const PlannedRun& run, const RunPlace&) { return std::optional(result_of(run)); },
                  {.folder = folder, .workers = workers});
}

}  // namespace headlab
