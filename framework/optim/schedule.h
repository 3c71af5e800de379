// Learning-rate schedules: a linear warm-up, then a decay to a floor. Computed in f64; round once where the
// rate is used. Needs no libm, so a step's rate has the same bits on every machine.
#pragma once

#include <cstdint>
#include <string_view>

namespace headlab {

/// What follows the warm-up. Cosine and linear end at the floor; constant stays at the peak for ever.
enum class Decay : std::uint8_t { cosine, linear, constant };

std::string_view name_of(Decay decay);
/// Error: no such decay (the message lists them).
Decay decay_named(std::string_view name);

struct ScheduleOptions {
  double peak = 1e-3;         ///< the highest rate, > 0
  double floor = 0;           ///< the rate from step `total` on, in [0, peak]
  std::int64_t warm_up = 0;   ///< steps before the peak, in [0, total]
  std::int64_t total = 1000;  ///< steps until the floor, >= 1
  Decay decay = Decay::cosine;
};

/// The rate of step i = 0, 1, 2, … An immutable value; safe to share between threads.
///   i < warm_up:  peak · (i + 1) / (warm_up + 1)
///   i < total:    floor + (peak - floor) / 2 · (1 + cos(π x)),  x = (i - warm_up) / (total - warm_up)
///                 or floor + (peak - floor) · (1 - x) for the linear decay
///   later:        floor
/// Always positive at step 0, finite, at most `peak`, and at least `floor` after the warm-up (Loshchilov and
/// Hutter 2017 for the cosine).
class Schedule {
 public:
  /// Errors: a peak that is not a positive normal f32 number even after division by warm_up + 1; a floor
  /// outside [0, peak]; total < 1; a warm-up outside [0, total]. Messages name both values.
  explicit Schedule(const ScheduleOptions& options);

  /// Error: a negative step.
  double rate(std::int64_t step) const;
  const ScheduleOptions& options() const { return options_; }

 private:
  ScheduleOptions options_;
};

}  // namespace headlab
