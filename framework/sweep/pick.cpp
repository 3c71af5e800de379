#include "framework/sweep/pick.h"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "framework/core/check.h"
#include "framework/files/run_folder.h"
#include "framework/sweep/ledger.h"

namespace headlab {
namespace {

constexpr double as_good = 0.01;
constexpr double rounding = 1e-12;  // .99 is within .01 of 1

double mean_accuracy(const std::vector<RunRecord>& runs) {
  double sum = 0;
  for (const RunRecord& run : runs) sum += run.accuracy;
  return sum / static_cast<double>(runs.size());
}

/// The runs of the smallest head count that is as good as any, in a grid at the setting where it is best, by
/// accuracy; empty when there are no runs.
std::vector<RunRecord> chosen_level(std::span<const RunRecord> records) {
  std::map<std::int64_t, std::map<std::string, std::vector<RunRecord>>> levels;
  for (const RunRecord& record : records) {
    if (!record.failure) levels[record.heads][record.setting].push_back(record);
  }
  std::map<std::int64_t, std::vector<RunRecord>> bests;
  double best = -std::numeric_limits<double>::infinity();
  for (auto& [heads, settings] : levels) {
    std::vector<RunRecord>& chosen = bests[heads];
    for (auto& [setting, runs] : settings) {
      if (chosen.empty() || mean_accuracy(runs) > mean_accuracy(chosen)) chosen = std::move(runs);
    }
    best = std::max(best, mean_accuracy(chosen));
  }
  for (auto& [heads, runs] : bests) {
    if (mean_accuracy(runs) < best - as_good - rounding) continue;
    std::sort(runs.begin(), runs.end(), [](const RunRecord& a, const RunRecord& b) {
      return std::pair(a.accuracy, a.seed) < std::pair(b.accuracy, b.seed);
    });
    return std::move(runs);
  }
  return {};
}

std::vector<RunRecord> runs_to_choose_from(const std::filesystem::path& path) {
  std::error_code error;
  check(std::filesystem::exists(path, error), path.string(), "there is no such folder or file");
  check(is_sweep(path), path.string(),
        "is neither a run (no config.json in it) nor a sweep (no ledger.json)");
  std::vector<RunRecord> runs = chosen_level(sweep_records(path));
  check(!runs.empty(), path.string(), "no run of this sweep is finished");
  return runs;
}

}  // namespace

std::optional<PickedRun> pick(std::span<const RunRecord> records) {
  std::vector<RunRecord> runs = chosen_level(records);
  if (runs.empty()) return std::nullopt;
  const std::size_t middle = (runs.size() - 1) / 2;
  return PickedRun{std::move(runs[middle]), std::ssize(runs)};
}

std::string reason(const PickedRun& picked) {
  return fmt::format(
      "{}: the median of {} seed{} by accuracy, at the fewest heads within {} of the best mean{}",
      picked.record.name, picked.runs, picked.runs == 1 ? "" : "s", as_good,
      picked.record.setting.empty() ? "" : " (" + picked.record.setting + ")");
}

std::vector<RunRecord> sweep_records(const std::filesystem::path& folder) {
  std::vector<RunRecord> records;
  for (const Ledger::Entry& run : read_ledger(folder).runs) {
    if (std::optional<RunRecord> record = find_record(folder / run.name, run.key)) {
      record->setting = run.setting;
      records.push_back(std::move(*record));
    }
  }
  return records;
}

// A run, or a file of weights.
static bool is_alone(const std::filesystem::path& path) {
  std::error_code error;
  return RunFolder::is_run(path) || std::filesystem::is_regular_file(path, error);
}

ChosenRun pick_run(const std::filesystem::path& path) {
  if (is_alone(path)) return {path, ""};
  const PickedRun picked = pick(runs_to_choose_from(path)).value();
  return {path / picked.record.name, reason(picked)};
}

std::vector<std::filesystem::path> pick_level(const std::filesystem::path& path) {
  if (is_alone(path)) return {path};
  std::vector<RunRecord> runs = runs_to_choose_from(path);
  std::sort(runs.begin(), runs.end(), [](const RunRecord& a, const RunRecord& b) { return a.seed < b.seed; });
  std::vector<std::filesystem::path> paths;
  for (const RunRecord& run : runs) paths.push_back(path / run.name);
  return paths;
}

}  // namespace headlab
