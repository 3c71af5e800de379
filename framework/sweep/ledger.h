// The ledger of a sweep: which runs belong to it and which of them are done. A sweep is a folder with
//   ledger.json               the runs of the sweep that was started last
//   h8-s1-<8 hex digits>/     a run folder each, named after heads, seed and the hash of all its options
//   h8-s1-<8 hex digits>/result.json    there when the run is done, with the whole hash
// A run's key is the hash of its options, of its data and of numbers_version: another option, other data or
// another version of the arithmetic make another run in another folder, and old ones stay.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "framework/data/task.h"
#include "framework/sweep/record.h"
#include "framework/train/run_config.h"
#include "framework/train/verify.h"

namespace headlab {

/// A run of a sweep, done or not.
struct PlannedRun {
  RunConfig config;
  std::string key;           ///< 16 hex digits
  std::string name;          ///< of its folder: h8-s1-<first 8 of them>
  std::string setting = {};  ///< its place in a grid, see RunRecord
};
/// A hash of the run's first training batch and of its held-out set: a generator or a text file that changed
/// makes another run.
std::uint64_t data_fingerprint(const Task& task, const RunConfig& config);
/// Pure. `data` is data_fingerprint().
PlannedRun plan_run(RunConfig config, std::uint64_t data, std::int64_t version = numbers_version);

/// The record of a finished run. Nothing when there is none or its key is another one. Error: result.json
/// cannot be read or is not a record.
std::optional<RunRecord> find_record(const std::filesystem::path& run, std::string_view key);
/// From then on the run is done. Errors: those of write_json.
void store_record(const std::filesystem::path& run, std::string_view key, const RunRecord& record);

/// The runs of the sweep that was started last in a folder.
struct Ledger {
  struct Entry {
    std::int64_t heads = 0;
    std::uint64_t seed = 0;
    std::string name;
    std::string key;
    std::string setting = {};
  };
  std::string task;
  std::vector<Entry> runs;
};
void write_ledger(const std::filesystem::path& folder, const Ledger& ledger);
/// Makes the folder where it is missing and writes the ledger of these runs. Errors: the path or one above it
/// is a file; the folder holds a single run; not writable.
void create_sweep(const std::filesystem::path& folder, std::string task, std::span<const PlannedRun> runs);
/// Errors: the folder holds no sweep (there is no ledger.json in it); not a ledger (the field is named).
Ledger read_ledger(const std::filesystem::path& folder);
bool is_sweep(const std::filesystem::path& folder);

}  // namespace headlab
