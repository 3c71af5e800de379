// What `headlab lifeline` says, as text for people and as JSON for programs.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "framework/heads/lifeline.h"
#include "framework/heads/matching.h"
#include "framework/train/run.h"

namespace headlab {

struct LifeOfRun {
  std::filesystem::path folder;
  LoadedRun run;
  RunLife life;
  std::vector<std::int64_t> loss_steps;
  std::vector<double> losses;
  std::optional<ChangePoint> loss;  ///< index into these
  bool trained_again = false;
};

struct LifeLines {
  std::string note;  ///< why this run of a sweep is shown
  std::vector<LifeOfRun> runs;
  std::size_t shown = 0;                ///< the one whose heads are listed
  std::vector<HeadMatching> matchings;  ///< of its heads with those of each other run, at the end
};

std::string lifeline_text(const LifeLines& lines);
nlohmann::json lifeline_json(const LifeLines& lines);

}  // namespace headlab
