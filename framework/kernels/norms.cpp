#include "framework/kernels/norms.h"

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "framework/core/parallel.h"
#include "framework/core/profile.h"
#include "framework/kernels/lanes.h"
#include "framework/kernels/rows.h"

namespace headlab::kernels {

namespace {

// Rows that are worked on together, so that the next row's sums go on while one's wait for their last
// addition. Each row has its own sums, in the order of its numbers: its bits are those of a row alone.
constexpr std::int64_t bundle = 4;

template <class T>
struct Affine {
  const T* gain;
  const T* bias;
};

template <Norm kind, std::int64_t count, class T>
HEADLAB_INLINE void norm_bundle(const T* from, Affine<T> affine, T eps, T* to, T* mean, T* r,
                                std::int64_t n) {
  using V = Lanes<T>;
  V center[count], scale[count];
  for (V& c : center) c = broadcast(T{0});
  if constexpr (kind == Norm::layer) {
    V sum[count];
    for (V& s : sum) s = broadcast(T{0});
    for_lanes<T>(n, [&](std::int64_t j, auto part) {
      for (std::int64_t i = 0; i < count; ++i) sum[i] = sum[i] + get(from + i * n + j, part);
    });
    for (std::int64_t i = 0; i < count; ++i) {
      mean[i] = horizontal_sum(sum[i]) / static_cast<T>(n);
      center[i] = broadcast(mean[i]);
    }
  } else {
    std::fill_n(mean, count, T{0});
  }
  V squares[count];
  for (V& s : squares) s = broadcast(T{0});
  for_lanes<T>(n, [&](std::int64_t j, auto part) {
    for (std::int64_t i = 0; i < count; ++i) {
      const V d = only(get(from + i * n + j, part) - center[i], part);
      squares[i] = fma(d, d, squares[i]);
    }
  });
  for (std::int64_t i = 0; i < count; ++i) {
    const T variance = horizontal_sum(squares[i]) / static_cast<T>(n);
    r[i] = T{1} / std::sqrt(variance + eps);
    scale[i] = broadcast(r[i]);
  }
  for (std::int64_t i = 0; i < count; ++i) {
    for_lanes<T>(n, [&](std::int64_t j, auto part) {
      V value = (get(from + i * n + j, part) - center[i]) * scale[i];
      if (affine.gain) value = value * get(affine.gain + j, part);
      if (affine.bias) value = value + get(affine.bias + j, part);
      put(to + i * n + j, value, part);
    });
  }
}

// Calls f(i, std::integral_constant<rows>) for bundles of rows that cover [begin, end).
template <class F>
void for_bundles(std::int64_t begin, std::int64_t end, const F& f) {
  std::int64_t i = begin;
  for (; i + bundle <= end; i += bundle) f(i, std::integral_constant<std::int64_t, bundle>{});
  for (; i < end; ++i) f(i, std::integral_constant<std::int64_t, 1>{});
}

template <Norm kind, class T>
void norm_rows(const T* x, const T* gain, const T* bias, T eps, T* y, T* mean, T* r, Rows shape) {
  const std::int64_t n = shape.n;
  profile::moved<T>(2, shape.rows * n);
  const Cost cost = price<T>(0.2, n);
  parallel_for(shape.rows, grain_for(cost), cost, [=](std::int64_t begin, std::int64_t end) {
    for_bundles(begin, end, [=](std::int64_t i, auto count) {
      norm_bundle<kind, count()>(x + i * n, Affine<T>{gain, bias}, eps, y + i * n, mean + i, r + i, n);
    });
  });
}

// With h = (x - mean)·r and g = dy·gain: every x of the row moves mean and r too, which takes from g its mean
// and its part along h:
//   dx = r·(g - mean(g) - h·mean(g·h));   the rms norm has no mean to move: dx = r·(g - h·mean(g·h))
//   dgain = Σ_rows dy·h,  dbias = Σ_rows dy
template <Norm kind, std::int64_t count, class T>
HEADLAB_INLINE void backward_bundle(const T* from, const T* gain, const T* mean, const T* r, const T* above,
                                    NormGradients<T> out, bool first, std::int64_t n) {
  using V = Lanes<T>;
  V m[count], s[count], sum_g[count], sum_gh[count];
  for (std::int64_t i = 0; i < count; ++i) {
    m[i] = broadcast(mean[i]);
    s[i] = broadcast(r[i]);
    sum_g[i] = sum_gh[i] = broadcast(T{0});
  }
  const auto unit = [&](std::int64_t i, std::int64_t j, auto part) {
    return (get(from + i * n + j, part) - m[i]) * s[i];
  };
  const auto scaled = [&](V g, std::int64_t j, auto part) { return gain ? g * get(gain + j, part) : g; };
  T* const dgain = out.gain_partials;
  T* const dbias = out.bias_partials;
  for_lanes<T>(n, [&](std::int64_t j, auto part) {
    V gains = dgain && !first ? get(dgain + j, part) : broadcast(T{0});
    V biases = dbias && !first ? get(dbias + j, part) : broadcast(T{0});
    for (std::int64_t i = 0; i < count; ++i) {
      const V term = get(above + i * n + j, part);
      const V h = unit(i, j, part);
      const V g = scaled(term, j, part);  // 0 in lanes past the end, and h finite there unless the row is not
      sum_g[i] = sum_g[i] + g;
      sum_gh[i] = sum_gh[i] + only(g * h, part);
      gains = first && i == 0 ? term * h : fma(term, h, gains);
      biases = first && i == 0 ? term : biases + term;
    }
    if (dgain) put(dgain + j, gains, part);
    if (dbias) put(dbias + j, biases, part);
  });
  if (!out.dx) return;
  V mean_g[count], mean_gh[count];
  for (std::int64_t i = 0; i < count; ++i) {
    mean_g[i] = broadcast(kind == Norm::layer ? horizontal_sum(sum_g[i]) / static_cast<T>(n) : T{0});
    mean_gh[i] = broadcast(horizontal_sum(sum_gh[i]) / static_cast<T>(n));
  }
  for (std::int64_t i = 0; i < count; ++i) {
    for_lanes<T>(n, [&](std::int64_t j, auto part) {
      T* to = out.dx + i * n + j;
      const V g = scaled(get(above + i * n + j, part), j, part);
      const V value = fnma(unit(i, j, part), mean_gh[i], g - mean_g[i]) * s[i];
      put(to, out.accumulate ? get(to, part) + value : value, part);
    });
  }
}

template <Norm kind, class T>
void backward_rows(const T* x, const T* gain, const T* mean, const T* r, const T* dy, NormGradients<T> out,
                   Rows shape) {
  const std::int64_t n = shape.n;
  profile::moved<T>(2 + (out.dx ? (out.accumulate ? 2 : 1) : 0), shape.rows * n);
  const std::int64_t chunk = chunk_rows(shape.rows);
  parallel_for(shape.rows, chunk, price<T>(0.3, n), [=](std::int64_t begin, std::int64_t end) {
    NormGradients<T> rows = out;
    if (out.gain_partials) rows.gain_partials += begin / chunk * n;
    if (out.bias_partials) rows.bias_partials += begin / chunk * n;
    for_bundles(begin, end, [=](std::int64_t i, auto count) {
      NormGradients<T> some = rows;
      if (out.dx) some.dx += i * n;
      backward_bundle<kind, count()>(x + i * n, gain, mean + i, r + i, dy + i * n, some, i == begin, n);
    });
  });
}

template <class T>
void norm_any(Norm kind, const T* x, const T* gain, const T* bias, T eps, T* y, T* mean, T* r, Rows shape) {
  if (kind == Norm::layer) return norm_rows<Norm::layer>(x, gain, bias, eps, y, mean, r, shape);
  norm_rows<Norm::rms>(x, gain, bias, eps, y, mean, r, shape);
}
template <class T>
void backward_any(Norm kind, const T* x, const T* gain, const T* mean, const T* r, const T* dy,
                  NormGradients<T> out, Rows shape) {
  if (kind == Norm::layer) return backward_rows<Norm::layer>(x, gain, mean, r, dy, out, shape);
  backward_rows<Norm::rms>(x, gain, mean, r, dy, out, shape);
}

}  // namespace

void norm(Norm kind, const float* x, const float* gain, const float* bias, float eps, float* y, float* mean,
          float* r, Rows shape) {
  norm_any(kind, x, gain, bias, eps, y, mean, r, shape);
}
void norm(Norm kind, const double* x, const double* gain, const double* bias, double eps, double* y,
          double* mean, double* r, Rows shape) {
  norm_any(kind, x, gain, bias, eps, y, mean, r, shape);
}
void norm_backward(Norm kind, const float* x, const float* gain, const float* mean, const float* r,
                   const float* dy, NormGradients<float> out, Rows shape) {
  backward_any(kind, x, gain, mean, r, dy, out, shape);
}
void norm_backward(Norm kind, const double* x, const double* gain, const double* mean, const double* r,
                   const double* dy, NormGradients<double> out, Rows shape) {
  backward_any(kind, x, gain, mean, r, dy, out, shape);
}

}  // namespace headlab::kernels
