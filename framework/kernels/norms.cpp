#include "framework/kernels/norms.h"

#include "framework/core/parallel.h"
#include "framework/core/profile.h"
#include "framework/kernels/lanes.h"
#include "framework/kernels/rows.h"

namespace headlab::kernels {

namespace {

template <Norm kind, class T>
void norm_rows(const T* x, const T* gain, const T* bias, T eps, T* y, T* mean, T* r, Rows shape) {
  using V = Lanes<T>;
  const std::int64_t n = shape.n;
  profile::moved<T>(2, shape.rows * n);
  const Cost cost = price<T>(0.3, n);
  parallel_for(shape.rows, grain_for(cost), cost, [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const T* from = x + i * n;
      T center = 0;
      if constexpr (kind == Norm::layer) {
        V sum = broadcast(T{0});
        for_lanes<T>(n, [&](std::int64_t j, auto part) { sum = sum + get(from + j, part); });
        center = horizontal_sum(sum) / static_cast<T>(n);
      }
      const V m = broadcast(center);
      V squares = broadcast(T{0});
      for_lanes<T>(n, [&](std::int64_t j, auto part) {
        const V d = only(get(from + j, part) - m, part);
        squares = fma(d, d, squares);
      });
      const T variance = horizontal_sum(squares) / static_cast<T>(n);
      const T scale = T{1} / std::sqrt(variance + eps);
      mean[i] = center;
      r[i] = scale;
      const V s = broadcast(scale);
      for_lanes<T>(n, [&](std::int64_t j, auto part) {
        V value = (get(from + j, part) - m) * s;
        if (gain) value = value * get(gain + j, part);
        if (bias) value = value + get(bias + j, part);
        put(y + i * n + j, value, part);
      });
    }
  });
}

// With h = (x - mean)·r and g = dy·gain: every x of the row moves mean and r too, which takes from g its mean
// and its part along h:
//   dx = r·(g - mean(g) - h·mean(g·h));   the rms norm has no mean to move: dx = r·(g - h·mean(g·h))
//   dgain = Σ_rows dy·h,  dbias = Σ_rows dy
template <Norm kind, class T>
void backward_rows(const T* x, const T* gain, const T* mean, const T* r, const T* dy, NormGradients<T> out,
                   Rows shape) {
  using V = Lanes<T>;
  const std::int64_t n = shape.n;
  const std::int64_t chunk = chunk_rows(shape.rows);
  profile::moved<T>(2 + (out.dx ? (out.accumulate ? 2 : 1) : 0), shape.rows * n);
  parallel_for(shape.rows, chunk, price<T>(0.4, n), [=](std::int64_t begin, std::int64_t end) {
    T* dgain = out.gain_partials ? out.gain_partials + begin / chunk * n : nullptr;
    T* dbias = out.bias_partials ? out.bias_partials + begin / chunk * n : nullptr;
    for (std::int64_t i = begin; i < end; ++i) {
      const T* from = x + i * n;
      const T* above = dy + i * n;
      const V m = broadcast(mean[i]);
      const V s = broadcast(r[i]);
      const auto unit = [&](std::int64_t j, auto part) { return (get(from + j, part) - m) * s; };
      const auto scaled = [&](std::int64_t j, auto part) {
        const V g = get(above + j, part);
        return gain ? g * get(gain + j, part) : g;
      };
      V sum_g = broadcast(T{0});
      V sum_gh = broadcast(T{0});
      const bool first = i == begin;
      for_lanes<T>(n, [&](std::int64_t j, auto part) {
        const V h = unit(j, part);
        const V g = scaled(j, part);  // 0 in lanes past the end, and h finite there unless the row is not
        sum_g = sum_g + g;
        sum_gh = sum_gh + only(g * h, part);
        if (dgain) {
          const V term = get(above + j, part);
          put(dgain + j, first ? term * h : fma(term, h, get(dgain + j, part)), part);
        }
        if (dbias) {
          const V term = get(above + j, part);
          put(dbias + j, first ? term : get(dbias + j, part) + term, part);
        }
      });
      if (!out.dx) continue;
      const V mean_g = broadcast(kind == Norm::layer ? horizontal_sum(sum_g) / static_cast<T>(n) : T{0});
      const V mean_gh = broadcast(horizontal_sum(sum_gh) / static_cast<T>(n));
      T* to = out.dx + i * n;
      for_lanes<T>(n, [&](std::int64_t j, auto part) {
        const V value = fnma(unit(j, part), mean_gh, scaled(j, part) - mean_g) * s;
        put(to + j, out.accumulate ? get(to + j, part) + value : value, part);
      });
    }
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
