#include "framework/command/bench_timing.h"

#include <algorithm>
#include <chrono>
#include <vector>

#include "framework/core/check.h"
#include "framework/core/parallel.h"
#include "framework/kernels/peak.h"

namespace headlab {

namespace {

constexpr int warm_up = 3;
constexpr std::size_t fewest = 5;

double seconds_of(const std::function<void()>& f) {
  const auto start = std::chrono::steady_clock::now();
  f();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// Linear between neighbours, as numpy's.
double quantile(const std::vector<double>& sorted, double share) {
  const double at = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(at);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (at - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

}  // namespace

Timing measure(const std::function<void()>& f, double seconds) {
  Timing timing;
  timing.first = 1e3 * seconds_of(f);
  for (int i = 1; i < warm_up; ++i) f();
  std::vector<double> times;
  for (double total = 0; total < seconds || times.size() < fewest;) {
    const double passed = seconds_of(f);
    total += passed;
    times.push_back(1e3 * passed);
  }
  std::sort(times.begin(), times.end());
  timing.median = quantile(times, 0.5);
  timing.low = quantile(times, 0.25);
  timing.high = quantile(times, 0.75);
  timing.fastest = times.front();
  timing.slowest = times.back();
  timing.calls = static_cast<std::int64_t>(times.size());
  return timing;
}

double measured_peak(double seconds) {
  // More pieces than threads: a thread that comes late does fewer.
  const std::int64_t pieces = 16 * threads();
  constexpr std::int64_t rounds = 25'000;
  std::vector<float> sums(static_cast<std::size_t>(pieces));
  const auto run = [&] {
    parallel_for(pieces, 1, {.flops = 1e9}, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        sums[static_cast<std::size_t>(i)] = kernels::peak_rounds(rounds, 1.0F, 1e-9F);
      }
    });
  };
  run();
  double best = seconds_of(run);
  for (double total = best; total < seconds;) {
    const double passed = seconds_of(run);
    best = std::min(best, passed);
    total += passed;
  }
  for (const float sum : sums) check(sum > 0, "bench", "the processor adds wrongly: {}", sum);
  return static_cast<double>(pieces * rounds * kernels::peak_flops_of_round()) / best / 1e9;
}

}  // namespace headlab
