// What `headlab inspect` says, as text for people and as JSON for programs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "framework/command/inspect_roles.h"
#include "framework/heads/analyse.h"
#include "framework/heads/answers.h"
#include "framework/heads/example_map.h"
#include "framework/heads/knockout.h"
#include "framework/sweep/pick.h"
#include "framework/train/run.h"

namespace headlab {

struct InspectedHeads {
  HeadAnalysis analysis;
  Answers intact;                          ///< on the half of the held-out set that is for scoring
  std::optional<KnockoutMatrix> knockout;  ///< absent where it would take long
  RoleAnalysis roles;
  std::vector<SeedRoles> seeds;  ///< all runs of the level of a sweep; of a run alone, itself
};

/// A table with a row per head, and what the task's targets found.
std::string heads_text(const InspectedHeads& found, const LoadedRun& run, const ChosenRun& chosen);
nlohmann::json heads_json(const InspectedHeads& found, const LoadedRun& run, const ChosenRun& chosen);

/// An attention map with the labels of the tokens.
std::string map_text(const ExampleMap& map, const ChosenRun& chosen, std::int64_t example);
nlohmann::json map_json(const ExampleMap& map, const ChosenRun& chosen);

}  // namespace headlab
