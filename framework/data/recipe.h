// How a task is trained unless the user says otherwise, as plain data: AdamW with warm-up and a schedule.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace headlab {

struct Recipe {
  /// What follows warm-up: a half cosine or a line down to the floor at the last step, or the peak for ever.
  enum class Schedule { cosine, linear, constant };

  std::int64_t batch = 32;
  std::int64_t steps = 0;
  double learning_rate = 0;  ///< the peak
  Schedule schedule = Schedule::cosine;
  /// Steps of warm-up, or, where that is 0, a share of all steps.
  std::int64_t warmup_steps = 0;
  double warmup_share = 0;
  double floor_share = 0;  ///< the floor as a share of the peak

  double beta1 = 0.9;
  double beta2 = 0.98;
  double epsilon = 1e-8;
  double clip = 1;  ///< largest norm of the whole gradient
  /// Decoupled. Biases and norm gains never decay; the read-out counts as a matrix.
  double weight_decay = 0;
  bool decay_matrices = true;
  bool decay_embeddings = true;
  bool decay_positions = true;

  /// Warm-up in a training of `total` steps; never longer than that.
  std::int64_t warmup(std::int64_t total) const {
    const std::int64_t asked =
        warmup_steps > 0 ? warmup_steps : std::llround(warmup_share * static_cast<double>(total));
    return std::min(asked, total);
  }
};

}  // namespace headlab
