#include "framework/sweep/reproduce.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include <nlohmann/json.hpp>

#include "framework/core/check.h"
#include "framework/core/random.h"
#include "framework/files/json_file.h"
#include "framework/sweep/ablation_run.h"
#include "framework/sweep/measure.h"
#include "framework/train/run.h"

namespace headlab {
namespace {

using Levels = std::map<std::int64_t, SeedValues>;  // by number of heads

/// Claims about the same trainings.
struct Group {
  Claim::Setting setting;
  std::vector<const Claim*> claims;
  std::set<std::int64_t> heads;
  std::set<std::int64_t> watched;  // levels whose accuracy is wanted in the middle

  bool about(const Claim& claim, std::int64_t level) const {
    return std::count(claim.heads.begin(), claim.heads.end(), level) > 0 || claim.minus == level;
  }
};

std::vector<Group> groups_of(const std::vector<Claim>& claims) {
  std::vector<Group> groups;
  for (const Claim& claim : claims) {
    const auto found = std::find_if(groups.begin(), groups.end(), [&](const Group& group) {
      return group.setting.name == claim.setting.name;
    });
    Group& group = found != groups.end() ? *found : groups.emplace_back();
    group.setting = claim.setting;
    group.claims.push_back(&claim);
    group.heads.insert(claim.heads.begin(), claim.heads.end());
    if (claim.minus) group.heads.insert(*claim.minus);
    if (claim.measure == Measure::half_step) group.watched.insert(claim.heads.begin(), claim.heads.end());
  }
  return groups;
}

std::filesystem::path folder_of(const std::filesystem::path& folder, const std::string& setting) {
  std::string name = setting;
  std::erase(name, ',');
  std::replace(name.begin(), name.end(), ' ', '-');
  return name.empty() ? folder : folder / name;
}

/// What two versions of the same claim must share for a kept number to be used.
std::string identity(const Claim& c) {
  const auto number = [](const auto& n) { return n ? fmt::format("{}", *n) : std::string("-"); };
  return fmt::format("{} {} {} {} {}", static_cast<int>(c.measure), c.target, number(c.other),
                     number(c.answer), c.threshold);
}

/// The group's numbers of one run, one a claim; kept in the run's folder.
class Numbers {
 public:
  Numbers(const Group& group, std::int64_t heads, const std::filesystem::path& run, const std::string& key)
      : file_(run / "claims.json"), key_(key) {
    for (const Claim* claim : group.claims) claims_.push_back(group.about(*claim, heads) ? claim : nullptr);
  }

  /// Kept ones, if they are all there.
  std::optional<SeedValues> kept() const {
    std::error_code error;
    if (!std::filesystem::exists(file_, error)) return std::nullopt;
    const nlohmann::json json = read_json(file_);
    if (!json.is_object() || json.value("key", "") != key_) return std::nullopt;
    SeedValues values;
    for (const Claim* claim : claims_) {
      values.emplace_back();
      if (claim == nullptr) continue;
      const auto found = json.find(identity(*claim));
      if (found == json.end()) return std::nullopt;
      if (found->is_number()) values.back() = found->get<double>();
    }
    return values;
  }

  SeedValues measure(const Task& task, const Catalogue& catalogue, const RunRecord& record) const {
    const std::filesystem::path run = file_.parent_path();
    const LoadedRun loaded = load_run(run, catalogue);
    Measuring measuring(*loaded.model, task, record.seed, record.accuracy, run);
    nlohmann::json json{{"key", key_}};
    SeedValues values;
    for (const Claim* claim : claims_) {
      values.push_back(claim == nullptr ? std::nullopt : measuring(*claim));
      if (claim == nullptr) continue;
      json[identity(*claim)] = values.back() ? nlohmann::json(*values.back()) : nlohmann::json();
    }
    write_json(file_, json);
    return values;
  }

 private:
  std::filesystem::path file_;
  std::string key_;
  std::vector<const Claim*> claims_;
};

std::vector<PlannedRun> plan(const Task& task, const Group& group, std::int64_t seeds) {
  std::vector<PlannedRun> runs;
  for (std::int64_t s = 0; s < seeds; ++s) {
    const auto seed = static_cast<std::uint64_t>(s);
    const RunConfig first = config_of(task, group.setting, *group.heads.begin(), seed);
    const std::uint64_t data = data_fingerprint(task, first);
    for (const std::int64_t heads : group.heads) {
      runs.push_back(plan_run(config_of(task, group.setting, heads, seed), data));
    }
  }
  return runs;
}

/// Trains a group; the numbers of each claim by level, empty when interrupted.
std::vector<Levels> numbers_of(const Task& task, const Catalogue& catalogue, const Group& group,
                               const ReproduceOptions& options, Reproduction& result) {
  const std::vector<PlannedRun> runs = plan(task, group, options.seeds);
  const std::filesystem::path folder = folder_of(options.folder, group.setting.name);
  const auto work = [&](const PlannedRun& run, const RunPlace& place) {
    const std::int64_t heads = run.config.needs.heads;
    const std::int64_t every = group.watched.count(heads) > 0 ? 25 : 0;
    std::optional<RunRecord> record = train_run(task, catalogue, run, place, every);
    if (record && !record->failure) {
      Numbers(group, heads, place.folder, run.key).measure(task, catalogue, *record);
    }
    return record;
  };
  create_sweep(folder, task.name(), runs);
  const GridResult grid = run_grid(
      runs, work,
      {.folder = folder, .workers = options.workers, .stop = options.stop, .progress = options.progress});
  result.runs += std::ssize(runs);
  result.made += grid.made;
  result.interrupted = grid.interrupted;
  if (grid.interrupted) return {};
  std::vector<Levels> levels(group.claims.size());
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const RunRecord& record = *grid.records[i];
    const std::int64_t heads = record.heads;
    SeedValues values(group.claims.size());
    if (record.failure) {
      ++result.failed;
    } else {
      const Numbers numbers(group, heads, folder / runs[i].name, runs[i].key);
      const std::optional<SeedValues> kept = numbers.kept();
      values = kept ? *kept : numbers.measure(task, catalogue, record);
    }
    for (std::size_t c = 0; c < values.size(); ++c) levels[c][heads].push_back(values[c]);
  }
  return levels;
}

SeedValues difference(const SeedValues& a, const SeedValues& b) {
  SeedValues result;
  for (std::size_t i = 0; i < a.size(); ++i) {
    result.push_back(a[i] && b[i] ? std::optional(*a[i] - *b[i]) : std::nullopt);
  }
  return result;
}

}  // namespace

RunConfig config_of(const Task& task, const Claim::Setting& setting, std::int64_t heads, std::uint64_t seed) {
  RunConfig config;
  config.task = task.name();
  config.needs = task.needs();
  config.recipe = task.recipe();
  config.recipe.steps = setting.steps > 0 ? setting.steps : task.measured_steps();
  config.needs.heads = heads;
  if (setting.layers > 0) config.needs.layers = setting.layers;
  config.needs.head_size = setting.head_size;
  config.needs.smeared_keys = config.needs.smeared_keys || setting.smeared_keys;
  if (setting.pooled) {
    config.needs.pooled = true;
    config.needs.head_size = config.needs.each_head();
    config.needs.layer_heads.assign(static_cast<std::size_t>(config.needs.layers), 0);
  }
  config.seed = seed;
  return config;
}

ClaimResult judge(const Claim& claim, std::int64_t heads, SeedValues values) {
  const auto in_range = [&](double value) {
    return (!claim.lower || value >= *claim.lower) && (!claim.upper || value <= *claim.upper);
  };
  ClaimResult result{claim, heads, std::move(values), {}, 0, false};
  result.summary = summarise(result.values);
  for (const std::optional<double>& value : result.values) {
    if (value && in_range(*value)) ++result.in_range;
  }
  const auto n = static_cast<double>(result.values.size());
  if (claim.seeds) {
    result.holds = n > 0 && static_cast<double>(result.in_range) >= *claim.seeds * n - 1e-9;
  } else {
    result.holds = result.summary.missing == 0 && result.summary.mean && in_range(*result.summary.mean);
  }
  return result;
}

bool Reproduction::holds() const {
  return !claims.empty() &&
         std::all_of(claims.begin(), claims.end(), [](const ClaimResult& c) { return c.holds; });
}

Reproduction reproduce(const Task& task, const Catalogue& catalogue, const ReproduceOptions& options) {
  const std::vector<Claim> claims = task.claims();
  check(!claims.empty(), "reproduce", "{} makes no claims", task.name());
  check(options.seeds >= 1, "reproduce", "{} seeds; at least 1 is needed", options.seeds);
  const std::vector<Group> groups = groups_of(claims);
  for (const Group& group : groups) {
    for (const std::int64_t heads : group.heads) {
      const RunConfig config = config_of(task, group.setting, heads, 0);
      validate(config);
      catalogue.build(config.needs);
    }
  }
  Reproduction result;
  result.task = task.name();
  result.seeds = options.seeds;
  for (const Group& group : groups) {
    std::vector<Levels> levels = numbers_of(task, catalogue, group, options, result);
    if (result.interrupted) {
      result.claims.clear();
      return result;
    }
    for (std::size_t c = 0; c < group.claims.size(); ++c) {
      const Claim& claim = *group.claims[c];
      for (const std::int64_t heads : claim.heads) {
        const SeedValues& own = levels[c][heads];
        result.claims.push_back(
            judge(claim, heads, claim.minus ? difference(own, levels[c][*claim.minus]) : own));
      }
    }
  }
  return result;
}

}  // namespace headlab
