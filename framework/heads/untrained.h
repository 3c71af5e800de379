// What heads of untrained models do: the null of roles that need one (sink, uniform, copying).
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "framework/data/task.h"
#include "framework/train/catalogue.h"

namespace headlab {

/// Scores of heads of models with fresh seeds, each sorted; by site, since sites see different keys.
struct UntrainedHeads {
  struct Site {
    std::vector<double> sink;     ///< PatternSummary::sink_mass
    std::vector<double> uniform;  ///< PatternSummary::normalised_entropy
    std::vector<double> copying;  ///< WeightFigures::copying; empty where there is none
  };
  std::map<AttentionSite, Site> sites;
  std::int64_t models = 0;
};

/// At least `heads` heads of every site, built from these needs. Each model looks at the first 8 sequences of
/// the half of the held-out set that is scored. Errors: a builder that is empty; a layer without telemetry.
UntrainedHeads untrained_heads(const ModelBuilder& build, const Needs& needs, const Task& task,
                               std::uint64_t seed, std::int64_t heads = 1000);

}  // namespace headlab
