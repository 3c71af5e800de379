// Head-count ablation: the same data, the same order, the same initial weights for every number of heads;
// what changes is how many heads share d_model.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "framework/data/task.h"
#include "framework/heads/knockout.h"
#include "framework/sweep/grid.h"
#include "framework/sweep/pick.h"
#include "framework/sweep/record.h"
#include "framework/sweep/statistics.h"
#include "framework/train/catalogue.h"
#include "framework/train/trainer.h"

namespace headlab {

struct AblationOptions {
  /// What all runs share; heads and seed come from the lists. needs.head_size 0 splits d_model among the
  /// heads; another value holds the size of a head, so that more heads make a larger model.
  RunConfig base;
  std::vector<std::int64_t> heads = {1, 4, 8, 16};
  /// The level that others are compared with; 1 if it is there, else the fewest heads, unless given.
  std::optional<std::int64_t> reference;
  std::uint64_t first_seed = 0;
  std::int64_t seeds = 5;
  std::filesystem::path folder;
  int workers = 0;                          ///< runs side by side; 0: threads()
  const std::atomic<bool>* stop = nullptr;  ///< when it turns true, trainings end after their step, with a
                                            ///< checkpoint to continue from
  std::function<void(const SweepProgress&)> progress = {};  ///< on the calling thread
};

/// One head count over all seeds. Statistics are over runs that are there and did not fail.
struct AblationLevel {
  std::int64_t heads = 0;
  std::int64_t head_size = 0;
  std::int64_t parameters = 0;
  std::vector<std::optional<RunRecord>> runs;  ///< one a seed, in order; absent: not done
  Summary accuracy, loss;
  /// Paired over shared seeds, accuracy and loss; absent for the reference.
  std::optional<Comparison> difference, loss_difference;
  std::optional<double> seconds;  ///< mean of a run
  Summary confidence, normalised_entropy, clean_heads, cover;
  std::optional<double> prototype;  ///< the task's own measured accuracy, for as many steps as that took
};

struct AblationResult {
  RunConfig base;
  std::int64_t reference = 1;
  std::uint64_t first_seed = 0;
  std::int64_t seeds = 0;
  std::filesystem::path folder;
  std::vector<AblationLevel> levels;  ///< in the order of options.heads
  std::vector<HeadTarget> targets;    ///< that the task names
  std::int64_t done = 0;              ///< runs with a record, failed ones included
  std::int64_t made = 0;              ///< of these, by this call
  bool interrupted = false;
  std::optional<PickedRun> picked;  ///< by the median rule, among runs that are done
  /// Of that run; absent when interrupted, and for a model without heads.
  std::optional<KnockoutMatrix> knockout;
};

/// Errors, all before the first run: no levels, or one twice; heads < 1 or not dividing d_model (names both);
/// a reference that is not a level; seeds < 1; a model that cannot be built; a folder that cannot be written.
/// A training whose loss is not finite is a failed run: kept, listed, its pair dropped. Other errors stop the
/// sweep; what is done is kept and the same call continues.
AblationResult run_ablation(const Task& task, const Catalogue& catalogue, const AblationOptions& options);

/// The statistics of records that are there: levels × seeds, in the order of `levels`. Fills accuracy, loss,
/// differences, seconds and head figures of each level from its runs. Error: no such reference.
void summarise_levels(std::vector<AblationLevel>& levels, std::int64_t reference);

}  // namespace headlab
