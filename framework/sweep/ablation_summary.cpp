#include <algorithm>

#include "framework/core/check.h"
#include "framework/core/significance.h"
#include "framework/sweep/ablation.h"

namespace headlab {
namespace {

template <class F>
SeedValues by_seed(const AblationLevel& level, const F& value) {
  SeedValues values;
  for (const std::optional<RunRecord>& run : level.runs) {
    values.push_back(run && !run->failure ? std::optional<double>(value(*run)) : std::nullopt);
  }
  return values;
}

template <class F>
Summary figure(const AblationLevel& level, const F& value) {
  return summarise(by_seed(level, [&](const RunRecord& run) -> std::optional<double> {
    if (!run.figures) return std::nullopt;
    return value(*run.figures);
  }));
}

void compare_with(std::vector<AblationLevel>& levels, std::size_t reference, double RunRecord::*value,
                  std::optional<Comparison> AblationLevel::*difference) {
  std::vector<SeedValues> values;
  for (const AblationLevel& level : levels) {
    values.push_back(by_seed(level, [value](const RunRecord& run) { return run.*value; }));
  }
  for (AblationLevel& level : levels) level.*difference = std::nullopt;
  for (const Comparison& comparison : compare_levels(values, reference)) {
    levels[comparison.level].*difference = comparison;
  }
}

void adjust(std::vector<AblationResult>& results, std::optional<Comparison> AblationLevel::*difference) {
  std::vector<Comparison*> comparisons;
  std::vector<std::optional<double>> p;
  for (AblationResult& result : results) {
    for (AblationLevel& level : result.levels) {
      if (!(level.*difference)) continue;
      comparisons.push_back(&*(level.*difference));
      p.push_back(comparisons.back()->p);
    }
  }
  const auto adjusted = holm(p);
  for (std::size_t i = 0; i < comparisons.size(); ++i) comparisons[i]->adjusted_p = adjusted[i];
}

}  // namespace

void summarise_levels(std::vector<AblationLevel>& levels, std::int64_t reference) {
  const auto found = std::find_if(levels.begin(), levels.end(), [reference](const AblationLevel& level) {
    return level.heads == reference;
  });
  check(found != levels.end(), "ablation", "the reference, {} heads, is not one of the levels", reference);
  for (AblationLevel& level : levels) {
    level.accuracy = summarise(by_seed(level, [](const RunRecord& run) { return run.accuracy; }));
    level.loss = summarise(by_seed(level, [](const RunRecord& run) { return run.loss; }));
    level.seconds = summarise(by_seed(level, [](const RunRecord& run) { return run.seconds; })).mean;
    level.confidence = figure(level, [](const HeadFigures& f) { return f.confidence; });
    level.normalised_entropy = figure(level, [](const HeadFigures& f) { return f.normalised_entropy; });
    level.clean_heads =
        figure(level, [](const HeadFigures& f) { return static_cast<double>(f.clean_heads); });
    level.cover = figure(level, [](const HeadFigures& f) { return static_cast<double>(f.cover); });
    level.blended = figure(level, [](const HeadFigures& f) { return f.blended; });
  }
  const auto index = static_cast<std::size_t>(found - levels.begin());
  compare_with(levels, index, &RunRecord::accuracy, &AblationLevel::difference);
  compare_with(levels, index, &RunRecord::loss, &AblationLevel::loss_difference);
}

void adjust_together(std::vector<AblationResult>& results) {
  adjust(results, &AblationLevel::difference);
  adjust(results, &AblationLevel::loss_difference);
}

LearningCurve learning_curve(const AblationLevel& level) {
  LearningCurve curve;
  std::size_t points = 0;
  std::int64_t steps = 0;
  for (const std::optional<RunRecord>& run : level.runs) {
    if (!run || run->failure) continue;
    points = std::max(points, run->curve.size());
    steps = run->steps;
  }
  for (std::size_t i = 0; i < points; ++i) {
    const std::int64_t pieces = static_cast<std::int64_t>(points), piece = static_cast<std::int64_t>(i);
    curve.steps.push_back((piece + 1) * steps / pieces);
    curve.loss.push_back(summarise(by_seed(level, [&](const RunRecord& run) -> std::optional<double> {
      if (run.curve.size() != points) return std::nullopt;
      return run.curve[i];
    })));
  }
  return curve;
}

}  // namespace headlab
