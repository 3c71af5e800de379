// Head-count ablation: the same data, the same order, the same initial weights for every number of heads;
// what changes is how many heads there are, and with a grid one more option.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "framework/data/task.h"
#include "framework/heads/knockout.h"
#include "framework/sweep/grid.h"
#include "framework/sweep/hold.h"
#include "framework/sweep/pick.h"
#include "framework/sweep/rates.h"
#include "framework/sweep/record.h"
#include "framework/sweep/statistics.h"
#include "framework/train/catalogue.h"
#include "framework/train/trainer.h"

namespace headlab {

struct AblationOptions {
  /// What all runs share; heads and seed come from the lists. Its own heads are the ones whose size and whose
  /// parameters are held, see needs_at().
  RunConfig base;
  Hold hold = Hold::d_model;
  std::vector<std::int64_t> heads = {1, 4, 8, 16};
  /// The level that others are compared with; 1 if it is there, else the fewest heads, unless given.
  std::optional<std::int64_t> reference;
  std::uint64_t first_seed = 0;
  std::int64_t seeds = 5;
  /// Not empty: each level's learning rate is the one of these with the least loss, see RateChoice.
  std::vector<double> rates = {};
  std::filesystem::path folder;
  int workers = 0;                          ///< runs side by side; 0: threads()
  const std::atomic<bool>* stop = nullptr;  ///< when it turns true, trainings end after their step, with a
                                            ///< checkpoint to continue from
  std::function<void(const SweepProgress&)> progress = {};  ///< on the calling thread
};

/// One head count over all seeds. Statistics are over runs that are there and did not fail.
struct AblationLevel {
  std::int64_t heads = 0;
  std::int64_t d_model = 0;
  std::int64_t head_size = 0;
  std::int64_t parameters = 0;
  /// Fewer numbers in a head than keys that a query may see: its scores have too low a rank for some patterns
  /// (Bhojanapalli et al. 2020).
  bool low_rank = false;
  RunConfig config = {};                       ///< of the first seed
  std::optional<RateChoice> rate = {};         ///< where learning rates were chosen
  std::vector<std::optional<RunRecord>> runs;  ///< one a seed, in order; absent: not done
  Summary accuracy, loss;
  /// Paired over shared seeds, accuracy and loss; absent for the reference.
  std::optional<Comparison> difference, loss_difference;
  std::optional<double> seconds;  ///< mean of a run
  Summary confidence, normalised_entropy, clean_heads, cover, blended;
  /// The task's own measured accuracy, where this is how that was measured.
  std::optional<double> prototype;
};

struct AblationResult {
  RunConfig base;
  Hold hold = Hold::d_model;
  std::string setting = {};  ///< of a grid, "lr=0.01"
  std::int64_t reference = 1;
  std::uint64_t first_seed = 0;
  std::int64_t seeds = 0;
  std::filesystem::path folder;
  std::vector<AblationLevel> levels;  ///< in the order of options.heads
  std::vector<HeadTarget> targets;    ///< that the task names
  std::int64_t done = 0;              ///< runs with a record, failed ones included
  std::int64_t made = 0;              ///< of these, by this call
  bool interrupted = false;
  bool choosing = false;            ///< it was while learning rates were chosen
  std::optional<PickedRun> picked;  ///< by the median rule, among runs that are done
  /// Of that run; absent when interrupted, and for a model without heads.
  std::optional<KnockoutMatrix> knockout;
};

/// Errors, all before the first run: no levels, or one twice; those of needs_at(); a reference that is not a
/// level; seeds < 1; a model that cannot be built; a folder that cannot be written. A training whose loss is
/// not finite is a failed run: kept, listed, its pair dropped. Other errors stop the sweep; what is done is
/// kept and the same call continues.
AblationResult run_ablation(const Task& task, const Catalogue& catalogue, const AblationOptions& options);

/// One value of a second factor: what it makes of the task (a text file's context) and of the settings.
struct GridValue {
  std::string setting;  ///< "lr=0.01"
  std::shared_ptr<const Task> task;
  RunConfig base;
};

/// Head counts × values of another option, as one sweep. Each value compares head counts over the same seeds;
/// p-values are adjusted over all of these comparisons.
struct AblationGrid {
  std::string option;                   ///< "lr"
  std::vector<AblationResult> results;  ///< one a value; `picked` and `knockout` are with the grid's pick
  std::int64_t done = 0, total = 0;
  bool interrupted = false;
  std::optional<PickedRun> picked;  ///< among all
};

/// options.base is not looked at. Errors: of run_ablation(), for each value; no values, or one twice.
AblationGrid run_ablation_grid(const Catalogue& catalogue, const std::string& option,
                               const std::vector<GridValue>& values, const AblationOptions& options);

/// The statistics of records that are there: levels × seeds, in the order of `levels`. Fills accuracy, loss,
/// differences, seconds and head figures of each level from its runs. Error: no such reference.
void summarise_levels(std::vector<AblationLevel>& levels, std::int64_t reference);
/// Holm's correction over the comparisons of several results at once, in place of that within each.
void adjust_together(std::vector<AblationResult>& results);

/// Training loss by step: means of equal pieces of the course, and at which step each piece ends.
struct LearningCurve {
  std::vector<std::int64_t> steps;
  std::vector<Summary> loss;  ///< over seeds
};
/// Empty without finished runs.
LearningCurve learning_curve(const AblationLevel& level);

}  // namespace headlab
