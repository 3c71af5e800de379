// Claims: what a task says of trained models, as data; framework/sweep/reproduce.h puts them to the test.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace headlab {

/// One number of one trained model, over the half of the held-out set that is scored (accuracy: over all of
/// it). Head targets and answers are counted as the task lists them.
enum class Measure {
  accuracy,               ///< as the task counts it
  position,               ///< positions where every scored read-out is right
  cover,                  ///< targets that own a clean head
  distinct_offsets,       ///< different offsets of largest mean mass
  distinct_owners,        ///< different heads among those that do the targets' jobs best
  relation,               ///< share of queries whose largest weight is on the target: the best head
  relation_above_offset,  ///< the same less the best fixed offset
  mean_relation,          ///< the same, mean over heads
  mass,                   ///< mean weight on the target, and on `other` beside it where given: the best head
  mass_above_other,       ///< mean weight on the target less that on `other`, of the head best for the target
  half_step,              ///< first step, in steps of 25, at which accuracy is at least a half
  without_set,    ///< what is right of `answer` (or accuracy) without all heads of more than `threshold` mass
  accuracy_lost,  ///< of what is right of `answer` (or accuracy), without all heads of the target's attention
  worst_head,     ///< the same without one of these heads, the largest
  off_job_lost,   ///< share of right answers lost without a target's head, beside the one that it serves
};

struct Claim {
  /// How the trainings differ from the task's own; 0 and false: they do not.
  struct Setting {
    std::string name;        ///< "one layer"; empty for the task's own
    std::int64_t steps = 0;  ///< else Task::measured_steps()
    std::int64_t layers = 0;
    std::int64_t head_size = 0;
    bool smeared_keys = false;
    /// No heads at all: each position by itself, and the mean of them is read out. What a model can do that
    /// does not look. Levels then mean nothing.
    bool pooled = false;
  };
  std::string says;  ///< what is measured, for people
  Measure measure = Measure::accuracy;
  std::vector<std::int64_t> heads = {};  ///< the claim holds for each of these levels
  std::optional<double> lower = {}, upper = {};
  std::size_t target = 0;
  std::optional<std::size_t> other = {};
  std::optional<std::size_t> answer = {};
  double threshold = 0;
  /// The value is a level's less this level's, seed by seed.
  std::optional<std::int64_t> minus = {};
  /// Each seed by itself is in the range for at least this share of the seeds; absent: the mean is.
  std::optional<double> seeds = {};
  Setting setting = {};
};

}  // namespace headlab
