// Results of ablations made by hand, for tests of what is said about them.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "framework/sweep/ablation.h"

namespace headlab {

using LevelValues = std::pair<std::int64_t, std::vector<double>>;  // heads, accuracy by seed

/// 600 steps on `offsets`; loss is 1 − accuracy. An accuracy below 0 is a failed run.
inline AblationResult ablation_of(const std::vector<LevelValues>& levels, std::int64_t reference = 1) {
  AblationResult result;
  result.base.task = "offsets";
  result.base.recipe.steps = 600;
  result.base.needs.context = 16;
  result.base.needs.readouts = {{"t-1", 32}, {"t-2", 32}};
  result.folder = "sweeps/offsets";
  result.reference = reference;
  result.targets = {{"t-1", AttentionSite::self, 0}, {"t-2", AttentionSite::self, 1}};
  for (const auto& [heads, accuracies] : levels) {
    AblationLevel level;
    level.heads = heads;
    level.head_size = 64 / heads;
    level.d_model = 64;
    level.parameters = 36352;
    level.low_rank = level.head_size < 16;
    level.config.recipe.learning_rate = 0.01;
    for (std::size_t seed = 0; seed < accuracies.size(); ++seed) {
      RunRecord run;
      run.heads = heads;
      run.seed = seed;
      run.name = fmt::format("h{}-s{}-00000000", heads, seed);
      run.accuracy = accuracies[seed];
      run.loss = 1 - run.accuracy;
      run.steps = 600;
      run.parameters = level.parameters;
      run.head_size = level.head_size;
      run.seconds = 9.5;
      if (run.accuracy < 0) run.failure = "train: the loss of step 7 is nan; stopped before the update";
      level.runs.emplace_back(std::move(run));
      ++result.done;
    }
    result.seeds = std::ssize(accuracies);
    result.levels.push_back(std::move(level));
  }
  summarise_levels(result.levels, reference);
  return result;
}

/// The measured ladder of `offsets`.
inline AblationResult ladder_of_offsets() {
  return ablation_of({{1, {.208, .203, .211, .211, .210}},
                      {4, {.885, .866, .840, .640, .863}},
                      {8, {1, 1, 1, 1, 1}},
                      {16, {1, 1, 1, 1, 1}}});
}

/// The ladder with what its heads became, a picked run and its knock-outs.
inline AblationResult whole_ladder() {
  AblationResult result = ladder_of_offsets();
  for (AblationLevel& level : result.levels) {
    for (auto& run : level.runs)
      run->figures = level.heads == 8 ? HeadFigures{.92, .11, 8, 8, 2, 2, 8, 1.0}
                                      : HeadFigures{.92, .11, level.heads, 0, 0, 2, 8, 1.9};
    if (level.heads <= 8) level.prototype = level.heads == 1 ? .209 : level.heads == 4 ? .819 : 1;
  }
  summarise_levels(result.levels, 1);
  result.picked = PickedRun{*result.levels[2].runs[2], 5};
  KnockoutMatrix matrix;
  matrix.answers = {"t-1", "t-2"};
  const auto lost = [](std::int64_t head, double first, double second) {
    KnockoutLoss loss;
    loss.head = {0, head};
    loss.readouts = {first, second};
    return loss;
  };
  matrix.heads = {lost(0, 0, .98), lost(1, .01, -.01), lost(2, .97, 0)};
  result.knockout = matrix;
  return result;
}

/// Eight losses a run: 8, 7, … at h=1, half of that at h=4, a hundredth more at each seed.
inline AblationResult with_curves() {
  AblationResult result = ablation_of({{1, {.2, .21}}, {4, {.8, .82}}});
  for (AblationLevel& level : result.levels) {
    for (auto& run : level.runs) {
      const double shift = 0.01 * static_cast<double>(run->seed);
      for (int i = 8; i > 0; --i) run->curve.push_back((level.heads == 1 ? 1.0 : 0.5) * i + shift);
    }
  }
  return result;
}

inline AblationGrid grid_of_rates() {
  AblationGrid grid;
  grid.option = "lr";
  grid.results = {ablation_of({{1, {.2, .21, .22}}, {4, {.8, .81, .82}}}),
                  ablation_of({{1, {.3, .5, .4}}, {4, {.7, .2, .5}}})};
  grid.results[0].setting = "lr=0.01";
  grid.results[1].setting = "lr=0.003";
  grid.done = grid.total = 12;
  adjust_together(grid.results);
  return grid;
}

}  // namespace headlab
