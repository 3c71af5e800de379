#include "framework/kernels/finite.h"

#include "framework/kernels/lanes.h"

namespace headlab::kernels {

namespace {
// Zero times a finite number is zero, times anything else NaN, which a sum keeps.
template <class T>
bool all_finite_any(const T* x, std::int64_t rows, std::int64_t columns, std::int64_t step) {
  Lanes<T> sum = broadcast(T{0});
  for (std::int64_t i = 0; i < rows; ++i) {
    const T* row = x + i * step;
    for_lanes<T>(columns,
                 [&](std::int64_t j, auto part) { sum = fma(get(row + j, part), broadcast(T{0}), sum); });
  }
  return !any(sum != sum);
}
}  // namespace

bool all_finite(const float* x, std::int64_t rows, std::int64_t columns, std::int64_t step) {
  return all_finite_any(x, rows, columns, step);
}
bool all_finite(const double* x, std::int64_t rows, std::int64_t columns, std::int64_t step) {
  return all_finite_any(x, rows, columns, step);
}

}  // namespace headlab::kernels
