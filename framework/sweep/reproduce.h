// Reproduction: trains what a task's claims are about and says of each claim whether it holds.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "framework/data/task.h"
#include "framework/sweep/grid.h"
#include "framework/sweep/statistics.h"
#include "framework/train/catalogue.h"

namespace headlab {

struct ReproduceOptions {
  std::int64_t seeds = 5;  ///< 0 … seeds − 1
  /// Runs of the task's own setting are in it, those of others in folders below, each a sweep.
  std::filesystem::path folder;
  int workers = 0;                          ///< runs side by side; 0: threads()
  const std::atomic<bool>* stop = nullptr;  ///< as in AblationOptions
  std::function<void(const SweepProgress&)> progress = {};
};

/// One claim at one of its levels.
struct ClaimResult {
  Claim claim;
  std::int64_t heads = 0;
  SeedValues values;  ///< by seed; absent: the run failed, or has no such number
  Summary summary;
  std::int64_t in_range = 0;  ///< seeds whose own value is in the range
  bool holds = false;
};

struct Reproduction {
  std::string task;
  std::int64_t seeds = 0;
  std::vector<ClaimResult> claims = {};
  std::int64_t runs = 0;
  std::int64_t made = 0;     ///< of these, by this call
  std::int64_t failed = 0;   ///< whose loss was not finite
  bool interrupted = false;  ///< then there are no claims

  /// Whether there is a claim, and all hold.
  bool holds() const;
};

/// Runs that are there are used: stopped at any time, the same call goes on. A claim whose seeds are not all
/// there does not hold. Errors: a task without claims; seeds < 1; those of run_grid; claims that do not fit
/// their task.
Reproduction reproduce(const Task& task, const Catalogue& catalogue, const ReproduceOptions& options);

/// The verdict on values by seed; pure.
ClaimResult judge(const Claim& claim, std::int64_t heads, SeedValues values);

/// What a claim is about: the task's recipe for its measured number of steps, with the setting's changes.
RunConfig config_of(const Task& task, const Claim::Setting& setting, std::int64_t heads, std::uint64_t seed);

}  // namespace headlab
