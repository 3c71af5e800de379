// Timing of something that is done over and over, and the machine's limit to compare with.
#pragma once

#include <cstdint>
#include <functional>

namespace headlab {

/// Milliseconds.
struct Timing {
  double first = 0;  ///< the very first call, which finds no memory of earlier ones
  double median = 0;
  double low = 0, high = 0;  ///< quartiles
  double fastest = 0, slowest = 0;
  std::int64_t calls = 0;  ///< that the others are of; warm-up not counted
};

/// Calls f three times to warm up, then until `seconds` have passed and at least five times.
Timing measure(const std::function<void()>& f, double seconds);

/// GFLOP/s of f32 multiply-adds in registers, on all threads() at once: the best of rounds of about a
/// millisecond in this time.
double measured_peak(double seconds);

}  // namespace headlab
