// Runs side by side: each on its own std::thread, kept to one thread inside, so that the results are bit for
// bit those of running them one by one. Several processes may share a folder: a lock per run keeps them from
// doing the same one twice.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "framework/core/check.h"
#include "framework/sweep/ledger.h"
#include "framework/sweep/record.h"

namespace headlab {

/// What a run's work is given.
struct RunPlace {
  std::filesystem::path folder;     ///< exists and is locked
  const std::atomic<bool>* stop;    ///< when it turns true: come to an end soon
  std::atomic<std::int64_t>* step;  ///< to be kept up to date, for progress
};

/// Does one run and returns its record, or nothing when it was stopped on the way. Called on a worker's
/// thread. What it throws ends the sweep: a training that failed by itself is a record with `failure`.
using RunWork = std::function<std::optional<RunRecord>(const PlannedRun&, const RunPlace&)>;

struct SweepProgress {
  struct Running {
    std::string name;
    std::int64_t step = 0;
    std::int64_t steps = 0;
  };
  std::int64_t done = 0;
  std::int64_t total = 0;
  std::int64_t elsewhere = 0;    ///< being done by another process
  std::vector<Running> running;  ///< in this process, in the order of the plan
};

struct GridOptions {
  std::filesystem::path folder;
  int workers = 0;                          ///< 0: threads()
  const std::atomic<bool>* stop = nullptr;  ///< may be set by a signal handler
  /// Called on the calling thread, some times a second and when all is over.
  std::function<void(const SweepProgress&)> progress = {};
};

struct GridResult {
  std::vector<std::optional<RunRecord>> records;  ///< one a run; absent: stopped before it was done
  std::int64_t made = 0;                          ///< records that this call made; the others were there
  bool interrupted = false;
};

/// Does the runs that have no record yet, in the order given, and waits for those that another process is
/// doing; when that process dies it takes them over. Errors: workers < 0; what `work` throws (the first in
/// the order of runs, after the other workers have come to an end); files that cannot be written.
GridResult run_grid(std::span<const PlannedRun> runs, const RunWork& work, const GridOptions& options);

}  // namespace headlab
