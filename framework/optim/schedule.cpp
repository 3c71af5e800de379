#include "framework/optim/schedule.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numbers>

#include "framework/core/check.h"

namespace headlab {

namespace {

constexpr std::array<std::string_view, 3> decay_names{"cosine", "linear", "constant"};

/// cos(π x) for x in [0, 1], as sin(π (1/2 - x)) from its Taylor series: |argument| <= π/2, so the first term
/// left out, (π/2)^25 / 25!, is below 6e-21. Odd about x = 1/2 by construction.
double cos_pi(double x) {
  const double y = std::numbers::pi * (0.5 - x);
  const double y2 = y * y;
  double sum = 1;
  for (int k = 23; k >= 3; k -= 2) sum = 1 - sum * y2 / static_cast<double>(k * (k - 1));
  return y * sum;
}

}  // namespace

std::string_view name_of(Decay decay) { return decay_names.at(static_cast<std::size_t>(decay)); }

Decay decay_named(std::string_view name) {
  const auto* const found = std::find(decay_names.begin(), decay_names.end(), name);
  check(found != decay_names.end(), "schedule", "no decay is named '{}' (allowed: cosine, linear, constant)",
        name);
  return static_cast<Decay>(found - decay_names.begin());
}

Schedule::Schedule(const ScheduleOptions& options) : options_(options) {
  const auto& o = options_;
  check(std::isfinite(o.peak) && o.peak > 0, "schedule", "peak {} is not a finite number above 0", o.peak);
  check(o.peak <= static_cast<double>(std::numeric_limits<float>::max()), "schedule",
        "peak {} is larger than any f32 number", o.peak);
  check(o.floor >= 0 && o.floor <= o.peak, "schedule", "floor {} is not in 0 … peak {}", o.floor, o.peak);
  check(o.total >= 1, "schedule", "total {} is not at least 1 step", o.total);
  check(o.warm_up >= 0, "schedule", "warm-up {} is negative (allowed: 0 … total {})", o.warm_up, o.total);
  check(o.warm_up <= o.total, "schedule", "warm-up {} is longer than total {}", o.warm_up, o.total);
  const double first = o.peak / (static_cast<double>(o.warm_up) + 1);
  check(first >= static_cast<double>(std::numeric_limits<float>::min()), "schedule",
        "peak {} over a warm-up of {} steps starts at {}, which f32 cannot hold", o.peak, o.warm_up, first);
}

double Schedule::rate(std::int64_t step) const {
  check(step >= 0, "schedule", "step {} is negative", step);
  const auto& o = options_;
  if (step < o.warm_up)
    return o.peak * (static_cast<double>(step) + 1) / (static_cast<double>(o.warm_up) + 1);
  if (o.decay == Decay::constant) return o.peak;
  if (step >= o.total) return o.floor;
  const double x = static_cast<double>(step - o.warm_up) / static_cast<double>(o.total - o.warm_up);
  const double share = o.decay == Decay::cosine ? (1 + cos_pi(x)) / 2 : 1 - x;
  // Rounding must not carry the rate past either end.
  return std::clamp(o.floor + (o.peak - o.floor) * share, o.floor, o.peak);
}

}  // namespace headlab
