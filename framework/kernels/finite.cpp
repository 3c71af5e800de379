#include "framework/kernels/finite.h"

#include <bit>
#include <limits>

namespace headlab::kernels {

namespace {
// Infinities and NaN have all bits of the exponent set; compared as integers the compiler uses the lanes.
template <class Bits, class T>
bool all_finite_any(const T* x, std::int64_t rows, std::int64_t columns, std::int64_t step) {
  constexpr Bits exponent = std::bit_cast<Bits>(std::numeric_limits<T>::infinity());
  Bits bad = 0;
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < columns; ++j) {
      bad |= static_cast<Bits>((std::bit_cast<Bits>(x[i * step + j]) & exponent) == exponent);
    }
  }
  return bad == 0;
}
}  // namespace

bool all_finite(const float* x, std::int64_t rows, std::int64_t columns, std::int64_t step) {
  return all_finite_any<std::uint32_t>(x, rows, columns, step);
}
bool all_finite(const double* x, std::int64_t rows, std::int64_t columns, std::int64_t step) {
  return all_finite_any<std::uint64_t>(x, rows, columns, step);
}

}  // namespace headlab::kernels
