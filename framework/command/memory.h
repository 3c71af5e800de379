// Refusing impossible sizes before anything is allocated, and what was used in the end.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string_view>

namespace headlab {

/// A sum of array sizes in f64: no product of 64-bit sizes wraps round or overflows. Thread-compatible.
class MemoryEstimate {
 public:
  /// `copies` arrays (values, gradients, two moments: 4) of the product of `sizes` numbers each. Error: a
  /// negative size.
  MemoryEstimate& add(std::initializer_list<std::int64_t> sizes, double copies = 1, double bytes_each = 4);
  double bytes() const { return bytes_; }

 private:
  double bytes_ = 0;
};

/// The most bytes of physical memory that this process has had at once since reset_peak_memory(), or in all
/// where the system cannot reset it; absent where it does not say.
std::optional<double> peak_memory();
void reset_peak_memory();

/// Bytes that this process may use: the machine's memory, or less if a control group or RLIMIT_AS says so.
double machine_memory();

/// Error when the estimate is over the memory there is:
///   --d-model: about 16 EB of memory would be needed, this machine has 8.32 GB
void check_fits(std::string_view where, const MemoryEstimate& estimate, double memory = machine_memory());

}  // namespace headlab
