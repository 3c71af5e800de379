#include "framework/sweep/ablation.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

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

/// How the task's ladder was measured, at a number of heads.
bool is_as_measured(const Task& task, const RunConfig& config) {
  RunConfig measured{config.task, task.needs(), task.recipe(), config.seed, config.accumulation};
  measured.needs.heads = config.needs.heads;
  measured.recipe.steps = task.measured_steps();
  // Warm-up given in steps is scaled with them.
  measured.recipe.warmup_steps = config.recipe.warmup_steps;
  return to_json(config) == to_json(measured);
}

/// Levels without runs. Builds every model once, so that the last level's mistakes show before the first run.
std::vector<AblationLevel> checked_levels(const Task& task, const Catalogue& catalogue, const RunConfig& base,
                                          const AblationOptions& options) {
  check(!options.heads.empty(), "ablation", "there are no head counts to compare");
  check(options.seeds >= 1, "ablation", "{} seeds; at least 1 is needed", options.seeds);
  std::set<std::int64_t> seen;
  const std::vector<Rung> ladder = task.ladder();
  std::vector<AblationLevel> levels;
  for (const std::int64_t heads : options.heads) {
    check(seen.insert(heads).second, "ablation", "{} heads are asked for twice", heads);
    AblationLevel level;
    level.config = base;
    level.config.needs = needs_at(base.needs, options.hold, heads);
    level.config.seed = options.first_seed;
    validate(level.config);
    const Needs& needs = level.config.needs;
    level.heads = heads;
    level.d_model = needs.d_model;
    level.head_size = needs.each_head();
    level.low_rank = level.head_size < std::max(needs.context, needs.source_context);
    level.parameters = catalogue.build(needs)->parameter_count();
    for (const Rung& rung : ladder) {
      if (rung.heads == heads && is_as_measured(task, level.config)) level.prototype = rung.accuracy;
    }
    levels.push_back(std::move(level));
  }
  return levels;
}

AblationResult prepared(const Task& task, const Catalogue& catalogue, const RunConfig& base,
                        const AblationOptions& options) {
  AblationResult result;
  result.levels = checked_levels(task, catalogue, base, options);
  result.reference = reference_of(options);
  result.base = base;
  result.hold = options.hold;
  result.first_seed = options.first_seed;
  result.seeds = options.seeds;
  result.folder = options.folder;
  result.targets = task.head_targets();
  return result;
}

/// One sweep of one or more results, each with a task of its own.
class Ablation {
 public:
  Ablation(const Catalogue& catalogue, const AblationOptions& options)
      : catalogue_(catalogue), options_(options) {}

  void add(const Task& task, AblationResult& result) { parts_.push_back({&task, &result}); }

  /// Fills every result but its statistics; the records in the order of runs, or nothing while choosing.
  std::vector<RunRecord> run() {
    if (!options_.rates.empty() && !choose_rates()) return {};
    std::vector<PlannedRun> runs;
    // Level by level within a seed, so that an early look has every level.
    for (std::int64_t s = 0; s < options_.seeds; ++s) {
      for (const Part& part : parts_) {
        for (const AblationLevel& level : part.result->levels) {
          runs.push_back(plan(part, level.config, options_.first_seed + static_cast<std::uint64_t>(s)));
        }
      }
    }
    create_sweep(options_.folder, parts_.front().result->base.task, runs);
    GridResult grid = work_off(runs);
    std::vector<RunRecord> records;
    auto next = grid.records.begin();
    for (std::int64_t s = 0; s < options_.seeds; ++s) {
      for (const Part& part : parts_) {
        for (AblationLevel& level : part.result->levels) {
          std::optional<RunRecord>& record = *next++;
          if (record) {
            record->setting = part.result->setting;
            records.push_back(*record);
            ++part.result->done;
          }
          level.runs.push_back(std::move(record));
        }
      }
    }
    return records;
  }

 private:
  struct Part {
    const Task* task = nullptr;
    AblationResult* result = nullptr;
  };

  PlannedRun plan(const Part& part, RunConfig config, std::uint64_t seed) {
    config.seed = seed;
    const auto [data, added] = data_.try_emplace({part.task, config.recipe.batch, seed}, 0);
    if (added) data->second = data_fingerprint(*part.task, config);
    PlannedRun run = plan_run(std::move(config), data->second);
    run.setting = part.result->setting;
    tasks_[run.key] = part.task;
    return run;
  }

  GridResult work_off(const std::vector<PlannedRun>& runs) {
    const auto work = [&](const PlannedRun& run, const RunPlace& place) {
      return train_run(*tasks_.at(run.key), catalogue_, run, place);
    };
    GridResult grid = run_grid(runs, work,
                               {.folder = options_.folder,
                                .workers = options_.workers,
                                .stop = options_.stop,
                                .progress = options_.progress});
    for (const Part& part : parts_) {
      part.result->made += grid.made;
      part.result->interrupted = grid.interrupted;
    }
    return grid;
  }

  /// Whether all are chosen. Their runs stand in the folder but not in the ledger: nothing is reported of
  /// them.
  bool choose_rates() {
    std::vector<PlannedRun> runs;
    for_each_trial([&](const Part& part, const AblationLevel& level, TriedRate& tried, std::uint64_t seed) {
      RunConfig config = level.config;
      config.recipe.learning_rate = tried.rate;
      runs.push_back(plan(part, std::move(config), seed));
    });
    create_sweep(options_.folder, parts_.front().result->base.task, {});
    const GridResult grid = work_off(runs);
    if (grid.interrupted) {
      for (const Part& part : parts_) part.result->choosing = true;
      return false;
    }
    auto next = grid.records.begin();
    for_each_trial([&](const Part&, const AblationLevel&, TriedRate& tried, std::uint64_t) {
      const RunRecord& record = **next++;
      tried.loss.push_back(record.failure ? std::nullopt : std::optional(record.loss));
    });
    for (const Part& part : parts_) {
      for (AblationLevel& level : part.result->levels) {
        choose_rate(*level.rate, level.heads);
        level.config.recipe.learning_rate = level.rate->tried[*level.rate->best].rate;
        if (level.config.recipe.learning_rate != part.result->base.recipe.learning_rate)
          level.prototype.reset();
      }
    }
    return true;
  }

  template <class F>
  void for_each_trial(const F& f) {
    for (std::int64_t s = 0; s < choosing_seeds; ++s) {
      for (const Part& part : parts_) {
        for (AblationLevel& level : part.result->levels) {
          if (!level.rate) {
            level.rate.emplace();
            for (const double rate : options_.rates) level.rate->tried.push_back({rate, {}});
          }
          for (TriedRate& tried : level.rate->tried)
            f(part, level, tried, choosing_seed(options_.first_seed, s));
        }
      }
    }
  }

  const Catalogue& catalogue_;
  const AblationOptions& options_;
  std::vector<Part> parts_;
  std::map<std::tuple<const Task*, std::int64_t, std::uint64_t>, std::uint64_t> data_;
  std::map<std::string, const Task*> tasks_;  // by the key of a run
};

/// What the picked run loses without each head.
void look_at(AblationResult& result, const Task& task, const Catalogue& catalogue) {
  const RunRecord& record = result.picked->record;
  const auto level = std::find_if(result.levels.begin(), result.levels.end(),
                                  [&](const AblationLevel& l) { return l.heads == record.heads; });
  RunConfig config = level->config;
  config.seed = record.seed;
  result.knockout = knockout_of_run(task, catalogue, config, result.folder / record.name);
}

}  // namespace

AblationResult run_ablation(const Task& task, const Catalogue& catalogue, const AblationOptions& options) {
  AblationResult result = prepared(task, catalogue, options.base, options);
  Ablation ablation(catalogue, options);
  ablation.add(task, result);
  const std::vector<RunRecord> records = ablation.run();
  if (result.choosing) return result;
  summarise_levels(result.levels, result.reference);
  result.picked = pick(records);
  if (result.picked && !result.interrupted) look_at(result, task, catalogue);
  return result;
}

AblationGrid run_ablation_grid(const Catalogue& catalogue, const std::string& option,
                               const std::vector<GridValue>& values, const AblationOptions& options) {
  check(!values.empty(), "ablation", "there are no values of {} to compare", option);
  AblationGrid grid;
  grid.option = option;
  std::set<std::string> seen;
  for (const GridValue& value : values) {
    check(seen.insert(value.setting).second, "ablation", "{} is asked for twice", value.setting);
    grid.results.push_back(prepared(*value.task, catalogue, value.base, options));
    grid.results.back().setting = value.setting;
  }
  Ablation ablation(catalogue, options);
  for (std::size_t i = 0; i < values.size(); ++i) ablation.add(*values[i].task, grid.results[i]);
  const std::vector<RunRecord> records = ablation.run();
  grid.interrupted = grid.results.front().interrupted;
  grid.done = std::ssize(records);
  grid.total = options.seeds * std::ssize(options.heads) * std::ssize(values);
  if (grid.results.front().choosing) return grid;
  for (AblationResult& result : grid.results) summarise_levels(result.levels, result.reference);
  adjust_together(grid.results);
  grid.picked = pick(records);
  if (!grid.picked) return grid;
  for (std::size_t i = 0; i < values.size(); ++i) {
    AblationResult& result = grid.results[i];
    if (result.setting != grid.picked->record.setting) continue;
    result.picked = grid.picked;
    if (!grid.interrupted) look_at(result, *values[i].task, catalogue);
  }
  return grid;
}

}  // namespace headlab
