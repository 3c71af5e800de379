#include "framework/kernels/activation.h"

#include "framework/kernels/elementwise_math.h"
#include "framework/kernels/lanes.h"

namespace headlab::kernels {

namespace {

template <class Function>
f64x1 value(Function f, f64x1 x) {
  return {value(f, x.v)};
}
template <class Function>
ValueAndSlope<f64x1> value_and_slope(Function f, f64x1 x) {
  const ValueAndSlope<double> both = value_and_slope(f, x.v);
  return {{both.value}, {both.slope}};
}

}  // namespace

template <class Function, class T>
void activate(T* y, T* slope, Window window) {
  const FlushToZero flush;
  for (std::int64_t i = 0; i < window.rows; ++i) {
    T* row = y + i * window.stride;
    if (!slope) {
      for_lanes<T>(window.columns, [&](std::int64_t j, auto part) {
        put(row + j, value(Function{}, get(row + j, part)), part);
      });
      continue;
    }
    T* slopes = slope + i * window.stride;
    for_lanes<T>(window.columns, [&](std::int64_t j, auto part) {
      const auto both = value_and_slope(Function{}, get(row + j, part));
      put(row + j, both.value, part);
      put(slopes + j, both.slope, part);
    });
  }
}
template void activate<Gelu>(float*, float*, Window);
template void activate<Gelu>(double*, double*, Window);
template void activate<GeluExact>(float*, float*, Window);
template void activate<GeluExact>(double*, double*, Window);

template <class T>
void multiply(T* y, const T* factor, Window window) {
  const FlushToZero flush;
  for (std::int64_t i = 0; i < window.rows; ++i) {
    T* row = y + i * window.stride;
    const T* factors = factor + i * window.stride;
    for_lanes<T>(window.columns, [&](std::int64_t j, auto part) {
      put(row + j, get(row + j, part) * get(factors + j, part), part);
    });
  }
}
template void multiply(float*, const float*, Window);
template void multiply(double*, const double*, Window);

}  // namespace headlab::kernels
