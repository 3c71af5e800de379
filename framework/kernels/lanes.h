// One vocabulary for f32 and f64, so that a kernel is written once: f32 runs on sixteen lanes of simd.h, f64
// on the single lane defined here (it exists to check gradients and may use libm).
//
//   for_lanes<T>(n, [&](std::int64_t j, auto part) { put(y + j, exp(get(x + j, part)), part); });
//
// Like simd.h, for sources only.
#pragma once

#include <cmath>
#include <cstdint>
#include <type_traits>

#include "framework/core/parallel.h"
#include "framework/kernels/vector_math.h"

namespace headlab::kernels {

struct f64x1 {
  double v;
};
HEADLAB_INLINE f64x1 broadcast(double x) { return {x}; }
HEADLAB_INLINE f64x1 load(const double* p) { return {*p}; }
HEADLAB_INLINE void store(double* p, f64x1 x) { *p = x.v; }
HEADLAB_INLINE f64x1 operator+(f64x1 a, f64x1 b) { return {a.v + b.v}; }
HEADLAB_INLINE f64x1 operator-(f64x1 a, f64x1 b) { return {a.v - b.v}; }
HEADLAB_INLINE f64x1 operator*(f64x1 a, f64x1 b) { return {a.v * b.v}; }
HEADLAB_INLINE f64x1 operator/(f64x1 a, f64x1 b) { return {a.v / b.v}; }
HEADLAB_INLINE f64x1 fma(f64x1 a, f64x1 b, f64x1 c) { return {std::fma(a.v, b.v, c.v)}; }
HEADLAB_INLINE f64x1 fnma(f64x1 a, f64x1 b, f64x1 c) { return {std::fma(-a.v, b.v, c.v)}; }
HEADLAB_INLINE f64x1 times(f64x1 x, double factor) { return {x.v * factor}; }
HEADLAB_INLINE f64x1 sqrt(f64x1 x) { return {std::sqrt(x.v)}; }
HEADLAB_INLINE f64x1 exp(f64x1 x) { return {std::exp(x.v)}; }
HEADLAB_INLINE f64x1 log(f64x1 x) { return {std::log(x.v)}; }
/// NaN if either is NaN.
HEADLAB_INLINE f64x1 max(f64x1 a, f64x1 b) { return {a.v > b.v || std::isnan(a.v) ? a.v : b.v}; }
HEADLAB_INLINE f64x1 tanh(f64x1 x) { return {std::tanh(x.v)}; }
HEADLAB_INLINE f64x1 abs(f64x1 x) { return {std::abs(x.v)}; }
/// Comparisons, and whole numbers beside the lanes: a key's position, say.
struct mask1 {
  bool v;
};
struct i32x1 {
  std::int32_t v;
};
HEADLAB_INLINE mask1 operator==(f64x1 a, f64x1 b) { return {a.v == b.v}; }
HEADLAB_INLINE mask1 operator!=(f64x1 a, f64x1 b) { return {a.v != b.v}; }
HEADLAB_INLINE mask1 operator<(f64x1 a, f64x1 b) { return {a.v < b.v}; }
HEADLAB_INLINE mask1 operator<(i32x1 a, i32x1 b) { return {a.v < b.v}; }
HEADLAB_INLINE mask1 operator==(i32x1 a, i32x1 b) { return {a.v == b.v}; }
HEADLAB_INLINE i32x1 operator-(i32x1 a, i32x1 b) { return {a.v - b.v}; }
HEADLAB_INLINE mask1 operator&(mask1 a, mask1 b) { return {a.v && b.v}; }
HEADLAB_INLINE mask1 operator|(mask1 a, mask1 b) { return {a.v || b.v}; }
HEADLAB_INLINE mask1 operator~(mask1 a) { return {!a.v}; }
HEADLAB_INLINE bool any(mask1 m) { return m.v; }
HEADLAB_INLINE f64x1 select(mask1 m, f64x1 a, f64x1 b) { return m.v ? a : b; }
HEADLAB_INLINE i32x1 select(mask1 m, i32x1 a, i32x1 b) { return m.v ? a : b; }
HEADLAB_INLINE f64x1 to_float(i32x1 x) { return {static_cast<double>(x.v)}; }
HEADLAB_INLINE void store_int(std::int32_t* p, i32x1 x) { *p = x.v; }
HEADLAB_INLINE double horizontal_sum(f64x1 x) { return x.v; }
HEADLAB_INLINE double horizontal_max(f64x1 x) { return x.v; }

template <class T>
using Lanes = std::conditional_t<std::is_same_v<T, float>, f32x16, f64x1>;
template <class T>
constexpr std::int64_t width = std::is_same_v<T, float> ? lanes : 1;

template <class T>
HEADLAB_INLINE auto load_ints(const std::int32_t* p) {
  if constexpr (std::is_same_v<T, float>) {
    return load_int(p);
  } else {
    return i32x1{*p};
  }
}
template <class T>
HEADLAB_INLINE auto broadcast_ints(std::int32_t x) {
  if constexpr (std::is_same_v<T, float>) {
    return broadcast_int(x);
  } else {
    return i32x1{x};
  }
}

/// All lanes, or the first `count` of them at the end of a row.
struct WholeLanes {};
struct FirstLanes {
  std::int64_t count;
};
HEADLAB_INLINE f32x16 get(const float* p, WholeLanes, float = 0) { return load(p); }
HEADLAB_INLINE f32x16 get(const float* p, FirstLanes part, float fill = 0) {
  return load_masked(p, part.count, fill);
}
HEADLAB_INLINE f64x1 get(const double* p, WholeLanes, double = 0) { return load(p); }
HEADLAB_INLINE void put(float* p, f32x16 x, WholeLanes) { store(p, x); }
HEADLAB_INLINE void put(float* p, f32x16 x, FirstLanes part) { store_masked(p, x, part.count); }
HEADLAB_INLINE void put(double* p, f64x1 x, WholeLanes) { store(p, x); }
/// x with `fill` in the lanes that hold nothing.
HEADLAB_INLINE f32x16 only(f32x16 x, WholeLanes, float = 0) { return x; }
HEADLAB_INLINE f32x16 only(f32x16 x, FirstLanes part, float fill = 0) {
  return select(first_lanes(part.count), x, broadcast(fill));
}
HEADLAB_INLINE f64x1 only(f64x1 x, WholeLanes, double = 0) { return x; }

/// Calls f(j, part) for j = 0, width, 2·width, … < n.
template <class T, class F>
HEADLAB_INLINE void for_lanes(std::int64_t n, const F& f) {
  std::int64_t j = 0;
  for (; j + width<T> <= n; j += width<T>) f(j, WholeLanes{});
  if constexpr (width < T >> 1) {
    if (j < n) f(j, FirstLanes{n - j});
  }
}

/// The price of `numbers` numbers in a loop that takes this many nanoseconds for each in f32, as measured
/// from the second-level cache; f64 goes one by one.
template <class T>
Cost price(double nanoseconds, std::int64_t numbers) {
  return {.flops = 16 * nanoseconds * static_cast<double>(numbers) * (width<T> > 1 ? 1 : 8)};
}

/// The exponential and logarithm of one number, by the same maths as the lanes.
template <class T>
HEADLAB_INLINE T exp_of(T x) {
  return horizontal_max(exp(broadcast(x)));
}
template <class T>
HEADLAB_INLINE T log_of(T x) {
  return horizontal_max(log(broadcast(x)));
}

}  // namespace headlab::kernels
