#include "framework/kernels/optimise.h"

#include <array>
#include <cmath>
#include <type_traits>

#include "framework/core/profile.h"
#include "framework/kernels/lanes.h"

namespace headlab::kernels {

namespace {

template <class T>
Lanes<T> every_lane(double x) {
  return broadcast(static_cast<T>(x));
}

// Asks for the numbers two kilobytes ahead. Nobody computes on these arrays between two steps, so they come
// from memory, and the processor's own guesses stop at each page.
HEADLAB_INLINE void ask_for(const void* p) { __builtin_prefetch(static_cast<const char*>(p) + 2048); }

// Calls f(scaled), scaled(x) being a gradient as it is to be used.
template <class F>
void with_scale(GradientScale scale, const F& f) {
  if (!scale.changes()) return f([](auto x) { return x; });
  if (scale.before == 1) return f([=](auto x) { return times(x, scale.factor); });
  f([=](auto x) { return times(times(x, scale.before), scale.factor); });
}

template <class T>
void adamw_any(T* w, const T* g, T* m, T* v, std::int64_t n, const AdamWFactors& factors) {
  using V = Lanes<T>;
  profile::moved<T>(7, n);
  const V rest1 = every_lane<T>(1 - factors.beta1);
  const V beta2 = every_lane<T>(factors.beta2);
  const V rest2 = every_lane<T>(1 - factors.beta2);
  const V eps = every_lane<T>(factors.eps);
  const V keep = every_lane<T>(factors.keep);
  const V rate = every_lane<T>(factors.rate);
  const V root = every_lane<T>(factors.root);
  with_scale(factors.scale, [&](const auto& scaled) {
    for_lanes<T>(n, [&](std::int64_t i, auto part) {
      ask_for(w + i);
      ask_for(g + i);
      ask_for(m + i);
      ask_for(v + i);
      const V gradient = scaled(get(g + i, part));
      const V old = get(m + i, part);
      const V first = fma(rest1, gradient - old, old);
      const V second = fma(beta2, get(v + i, part), rest2 * gradient * gradient);
      put(m + i, first, part);
      put(v + i, second, part);
      put(w + i, fnma(rate, first / fma(root, sqrt(second), eps), keep * get(w + i, part)), part);
    });
  });
}

template <class T>
void sgd_any(T* w, const T* g, T* u, std::int64_t n, const SgdFactors& factors) {
  using V = Lanes<T>;
  profile::moved<T>(u ? 5 : 3, n);
  const V lr = every_lane<T>(factors.lr);
  const V momentum = every_lane<T>(factors.momentum);
  const V keep = every_lane<T>(factors.keep);
  with_scale(factors.scale, [&](const auto& scaled) {
    for_lanes<T>(n, [&](std::int64_t i, auto part) {
      ask_for(w + i);
      ask_for(g + i);
      if (u) ask_for(u + i);
      const V gradient = scaled(get(g + i, part));
      V direction = gradient;
      if (u) {
        const V velocity = fma(momentum, get(u + i, part), gradient);
        put(u + i, velocity, part);
        direction = factors.nesterov ? fma(momentum, velocity, gradient) : velocity;
      }
      put(w + i, fnma(lr, direction, keep * get(w + i, part)), part);
    });
  });
}

// Eight running sums in a fixed order, folded one after the other.
template <class T>
double sum_of_squares_any(const T* x, std::int64_t n, double factor) {
  profile::moved<T>(1, n);
  std::array<double, 8> sums{};
  std::int64_t i = 0;
  if constexpr (std::is_same_v<T, float>) {
    f64x8 running;
    for (; i + lanes <= n; i += lanes) {
      ask_for(x + i);
      add_squares(running, x + i, factor);
      add_squares(running, x + i + 8, factor);
    }
    store(sums.data(), running);
  }
  for (std::size_t lane = 0; i < n; ++i, lane = (lane + 1) % 8) {
    const double value = factor * static_cast<double>(x[i]);
    sums[lane] += value * value;
  }
  double total = 0;
  for (const double sum : sums) total += sum;
  return total;
}

template <class T>
void scale_any(T* x, std::int64_t n, GradientScale scale) {
  profile::moved<T>(2, n);
  with_scale(scale, [&](const auto& scaled) {
    for_lanes<T>(n, [&](std::int64_t i, auto part) { put(x + i, scaled(get(x + i, part)), part); });
  });
}

}  // namespace

void adamw(float* w, const float* g, float* m, float* v, std::int64_t n, const AdamWFactors& factors) {
  adamw_any(w, g, m, v, n, factors);
}
void adamw(double* w, const double* g, double* m, double* v, std::int64_t n, const AdamWFactors& factors) {
  adamw_any(w, g, m, v, n, factors);
}
void sgd(float* w, const float* g, float* u, std::int64_t n, const SgdFactors& factors) {
  sgd_any(w, g, u, n, factors);
}
void sgd(double* w, const double* g, double* u, std::int64_t n, const SgdFactors& factors) {
  sgd_any(w, g, u, n, factors);
}
double sum_of_squares(const float* x, std::int64_t n, double scale) {
  return sum_of_squares_any(x, n, scale);
}
double sum_of_squares(const double* x, std::int64_t n, double scale) {
  return sum_of_squares_any(x, n, scale);
}
double largest_magnitude(const double* x, std::int64_t n) {
  f64x1 largest{0};
  for (std::int64_t i = 0; i < n; ++i) largest = max(largest, f64x1{std::abs(x[i])});
  return largest.v;
}
void scale(float* x, std::int64_t n, GradientScale scale) { scale_any(x, n, scale); }
void scale(double* x, std::int64_t n, GradientScale scale) { scale_any(x, n, scale); }

}  // namespace headlab::kernels
