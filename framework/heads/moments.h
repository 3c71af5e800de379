// The course of a training: its weights at some steps, and its loss at all of them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "framework/train/run.h"

namespace headlab {

/// The weights of a model at one moment of its training.
struct Moment {
  std::int64_t step = 0;
  std::map<std::string, Array> weights;  ///< as Module::state() has them
};

struct Course {
  std::vector<Moment> moments;           ///< at most 20, closer together at the start; the last step included
  std::vector<std::int64_t> loss_steps;  ///< ascending
  std::vector<double> losses;            ///< training loss of each of these steps
  bool trained_again = false;
};

/// From the snapshots and metrics.jsonl of a run; where a run has no snapshots (those of sweeps don't), by
/// training it again, which gives the same weights. Errors: a run that was not trained to its end; one
/// without snapshots that is too large to be trained again in about a minute; a repetition that ends with
/// other weights than the run has, as after a change of headlab. With `every`, training again in any case:
/// the moments are then 0, every, 2·every, … and the last step. Error: every < 1, or more than 200 moments.
Course course_of(const LoadedRun& run, const std::filesystem::path& folder, const Catalogue& catalogue,
                 std::optional<std::int64_t> every = std::nullopt);

}  // namespace headlab
