// What `headlab prune` says, as text for people and as JSON for programs.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "framework/heads/knockout.h"
#include "framework/heads/prune.h"
#include "framework/sweep/pick.h"
#include "framework/train/run.h"

namespace headlab {

/// One pruning. Times are of the same held-out sequences, before and after; gates are one for each of all
/// heads, 0 where the head is gone.
struct Pruning {
  HeadList all, kept;
  std::vector<double> gates;
  std::optional<double> keep, lambda;  ///< what was asked for: a share, or a price of gates
  std::vector<double> importance;      ///< of all heads, where a share was asked for
  double intact_parameters = 0, parameters = 0;
  double largest_logit = 0, largest_difference = 0;
  double seconds = 0, whole_seconds = 0;
  Answers intact, pruned;
  KnockoutLoss loss;
  std::vector<double> random_accuracy;  ///< of as many heads at random, the smallest first
  std::optional<LearnedGates> learned;
  std::string file;

  double times_as_fast() const { return seconds > 0 ? whole_seconds / seconds : 1; }
  /// Largest difference from the gated model's logits, over the largest of them.
  double relative_difference() const { return largest_logit > 0 ? largest_difference / largest_logit : 0; }
};

std::string prune_text(const Pruning& p, const LoadedRun& run, const ChosenRun& chosen);
nlohmann::json prune_json(const Pruning& p, const LoadedRun& run, const ChosenRun& chosen);

}  // namespace headlab
