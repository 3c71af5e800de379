#include "framework/sweep/ablation.h"

#include <algorithm>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "framework/core/check.h"
#include "framework/sweep/ablation_run.h"
#include "framework/sweep/ledger.h"

namespace headlab {
namespace {

std::int64_t reference_of(const AblationOptions& options) {
  const std::vector<std::int64_t>& heads = options.heads;
  const auto is_level = [&heads](std::int64_t h) { return std::count(heads.begin(), heads.end(), h) > 0; };
  if (!options.reference) return is_level(1) ? 1 : *std::min_element(heads.begin(), heads.end());
  check(is_level(*options.reference), "ablation", "the reference, {} heads, is not one of the levels {}",
        *options.reference, fmt::join(heads, ", "));
  return *options.reference;
}

RunConfig config_of(const AblationOptions& options, std::int64_t heads, std::uint64_t seed) {
  RunConfig config = options.base;
  config.needs.heads = heads;
  config.seed = seed;
  return config;
}

/// Levels without runs. Builds every model once, so that the last level's mistakes show before the first run.
std::vector<AblationLevel> checked_levels(const Task& task, const Catalogue& catalogue,
                                          const AblationOptions& options) {
  check(!options.heads.empty(), "ablation", "there are no head counts to compare");
  check(options.seeds >= 1, "ablation", "{} seeds; at least 1 is needed", options.seeds);
  const Needs& needs = options.base.needs;
  std::set<std::int64_t> seen;
  for (const std::int64_t heads : options.heads) {
    check(heads >= 1, "ablation", "{} heads; at least 1 is needed", heads);
    check(seen.insert(heads).second, "ablation", "{} heads are asked for twice", heads);
    check(needs.head_size > 0 || needs.d_model % heads == 0, "ablation",
          "d_model {} is not a multiple of {} heads", needs.d_model, heads);
  }
  const std::vector<Rung> ladder = task.ladder();
  std::vector<AblationLevel> levels;
  for (const std::int64_t heads : options.heads) {
    const RunConfig config = config_of(options, heads, options.first_seed);
    validate(config);
    AblationLevel level;
    level.heads = heads;
    level.head_size = needs.head_size > 0 ? needs.head_size : needs.d_model / heads;
    level.parameters = catalogue.build(config.needs)->parameter_count();
    for (const Rung& rung : ladder) {
      const bool same = config.recipe.steps == task.measured_steps();
      if (rung.heads == heads && same) level.prototype = rung.accuracy;
    }
    levels.push_back(std::move(level));
  }
  return levels;
}

/// Level by level within a seed, so that an early look has every level.
std::vector<PlannedRun> plan(const Task& task, const AblationOptions& options) {
  std::vector<PlannedRun> runs;
  for (std::int64_t s = 0; s < options.seeds; ++s) {
    const std::uint64_t seed = options.first_seed + static_cast<std::uint64_t>(s);
    const std::uint64_t data = data_fingerprint(task, config_of(options, options.heads.front(), seed));
    for (const std::int64_t heads : options.heads) {
      runs.push_back(plan_run(config_of(options, heads, seed), data));
    }
  }
  return runs;
}

template <class F>
Summary summary_over(const AblationLevel& level, const F& value) {
  SeedValues values;
  for (const std::optional<RunRecord>& run : level.runs) {
    values.push_back(run && !run->failure ? value(*run) : std::nullopt);
  }
  return summarise(values);
}

template <class F>
auto figure(const F& value) {
  return [value](const RunRecord& run) {
    return run.figures ? std::optional<double>(static_cast<double>(value(*run.figures))) : std::nullopt;
  };
}

SeedValues by_seed(const AblationLevel& level, double RunRecord::*value) {
  SeedValues values;
  for (const std::optional<RunRecord>& run : level.runs) {
    values.push_back(run && !run->failure ? std::optional((*run).*value) : std::nullopt);
  }
  return values;
}

void compare_with(std::vector<AblationLevel>& levels, std::size_t reference, double RunRecord::*value,
                  std::optional<Comparison> AblationLevel::*difference) {
  std::vector<SeedValues> values;
  for (const AblationLevel& level : levels) values.push_back(by_seed(level, value));
  for (AblationLevel& level : levels) level.*difference = std::nullopt;
  for (const Comparison& comparison : compare_levels(values, reference)) {
    levels[comparison.level].*difference = comparison;
  }
}

}  // namespace

void summarise_levels(std::vector<AblationLevel>& levels, std::int64_t reference) {
  const auto found = std::find_if(levels.begin(), levels.end(), [reference](const AblationLevel& level) {
    return level.heads == reference;
  });
  check(found != levels.end(), "ablation", "the reference, {} heads, is not one of the levels", reference);
  for (AblationLevel& level : levels) {
    using Value = std::optional<double>;
    level.accuracy = summary_over(level, [](const RunRecord& run) { return Value(run.accuracy); });
    level.loss = summary_over(level, [](const RunRecord& run) { return Value(run.loss); });
    level.seconds = summary_over(level, [](const RunRecord& run) { return run.seconds; }).mean;
    level.confidence = summary_over(level, figure([](const HeadFigures& f) { return f.confidence; }));
    level.normalised_entropy =
        summary_over(level, figure([](const HeadFigures& f) { return f.normalised_entropy; }));
    level.clean_heads = summary_over(level, figure([](const HeadFigures& f) { return f.clean_heads; }));
    level.cover = summary_over(level, figure([](const HeadFigures& f) { return f.cover; }));
  }
  const auto index = static_cast<std::size_t>(found - levels.begin());
  compare_with(levels, index, &RunRecord::accuracy, &AblationLevel::difference);
  compare_with(levels, index, &RunRecord::loss, &AblationLevel::loss_difference);
}

AblationResult run_ablation(const Task& task, const Catalogue& catalogue, const AblationOptions& options) {
  AblationResult result;
  result.levels = checked_levels(task, catalogue, options);
  result.reference = reference_of(options);
  result.base = options.base;
  result.first_seed = options.first_seed;
  result.seeds = options.seeds;
  result.folder = options.folder;
  result.targets = task.head_targets();

  const std::vector<PlannedRun> runs = plan(task, options);
  const auto work = [&](const PlannedRun& run, const RunPlace& place) {
    return train_run(task, catalogue, run, place);
  };
  create_sweep(options.folder, options.base.task, runs);
  const GridResult grid = run_grid(runs, work,
                                   {.folder = options.folder,
                                    .workers = options.workers,
                                    .stop = options.stop,
                                    .progress = options.progress});
  result.made = grid.made;
  result.interrupted = grid.interrupted;
  std::vector<RunRecord> records;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    result.levels[i % result.levels.size()].runs.push_back(grid.records[i]);
    if (grid.records[i]) records.push_back(*grid.records[i]);
  }
  result.done = std::ssize(records);
  summarise_levels(result.levels, result.reference);
  result.picked = pick(records);
  if (result.picked && !result.interrupted) {
    const RunRecord& record = result.picked->record;
    result.knockout = knockout_of_run(task, catalogue, config_of(options, record.heads, record.seed),
                                      options.folder / record.name);
  }
  return result;
}

}  // namespace headlab
