#include "framework/kernels/finite.h"

#include "framework/kernels/lanes.h"

namespace headlab::kernels {

namespace {
// Zero times a finite number is zero, times anything else NaN, which a sum keeps.
template <class T>
bool all_finite_any(const T* x, std::int64_t rows, std::int64_t columns, std::int64_t step) {
  Lanes<T> sum = broadcast(T{0}), sum_1 = sum, sum_2 = sum, sum_3 = sum;
  if (rows == 1) {  // one long row as four
    const std::int64_t quarter = columns / 4 / width<T> * width<T>;
    if (quarter > 0 && !all_finite_any(x, 4, quarter, quarter)) return false;
    x += 4 * quarter;
    columns -= 4 * quarter;
  }
  std::int64_t i = 0;
  for (; i + 4 <= rows; i += 4) {
    const T* row = x + i * step;
    for_lanes<T>(columns, [&](std::int64_t j, auto part) {
      sum = fma(get(row + j, part), broadcast(T{0}), sum);
      sum_1 = fma(get(row + step + j, part), broadcast(T{0}), sum_1);
      sum_2 = fma(get(row + 2 * step + j, part), broadcast(T{0}), sum_2);
      sum_3 = fma(get(row + 3 * step + j, part), broadcast(T{0}), sum_3);
    });
  }
  for (; i < rows; ++i) {
    const T* row = x + i * step;
    for_lanes<T>(columns,
                 [&](std::int64_t j, auto part) { sum = fma(get(row + j, part), broadcast(T{0}), sum); });
  }
  sum = (sum + sum_1) + (sum_2 + sum_3);
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
