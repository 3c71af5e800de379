// Which run to look at when a whole sweep is at hand: the median seed, by accuracy, of the smallest head
// count whose mean accuracy is within 0.01 of the best.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "framework/sweep/record.h"

namespace headlab {

struct PickedRun {
  RunRecord record;
  std::int64_t runs = 0;  ///< finished ones of that head count, failed ones left out
};

/// Failed runs do not count; with an even number the lower median; equal accuracies in the order of seeds.
/// Nothing when no run is there.
std::optional<PickedRun> pick(std::span<const RunRecord> records);
/// "h8-s2-0f3a77c1: the median of 5 seeds by accuracy, …": for people, one line.
std::string reason(const PickedRun& picked);

/// The records of the sweep that was started last in a folder, those that are done. Errors: of read_ledger
/// and find_record.
std::vector<RunRecord> sweep_records(const std::filesystem::path& folder);

/// For commands that want a run: `path` itself where it is a run or a file of weights, else the picked run of
/// the sweep that it is; `note` is the reason then, else empty. Errors: neither a run nor a sweep; a sweep
/// without a finished run.
struct ChosenRun {
  std::filesystem::path path;
  std::string note;
};
ChosenRun pick_run(const std::filesystem::path& path);
/// All finished runs of the head count that pick_run() chooses, by seed; a run alone is itself.
std::vector<std::filesystem::path> pick_level(const std::filesystem::path& path);

}  // namespace headlab
