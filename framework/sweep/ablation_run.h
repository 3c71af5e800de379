// One run of an ablation: train, evaluate, look at the heads.
#pragma once

#include <filesystem>
#include <optional>

#include "framework/sweep/ablation.h"

namespace headlab {

/// Trains in place.folder (from its checkpoint, where an earlier call was stopped) and measures the final
/// model. Nothing when it was stopped. A loss that is not finite gives a record with `failure`. For workers
/// of run_grid: thread-safe, as tasks and catalogues are. Other errors are thrown.
/// `evaluate_every`: see TrainOptions; it changes no number of the record.
std::optional<RunRecord> train_run(const Task& task, const Catalogue& catalogue, const PlannedRun& run,
                                   const RunPlace& place, std::int64_t evaluate_every = 0);

/// What each read-out of a finished run loses without each head, on the scoring half of the held-out set.
/// Nothing for a model without heads or where the checkpoint has been removed. Error: the run's checkpoint
/// cannot be read or is not its own.
std::optional<KnockoutMatrix> knockout_of_run(const Task& task, const Catalogue& catalogue,
                                              const RunConfig& config, const std::filesystem::path& run);

}  // namespace headlab
