#include "framework/kernels/rows.h"

#include <algorithm>
#include <limits>

#include "framework/core/array.h"
#include "framework/core/parallel.h"
#include "framework/core/profile.h"
#include "framework/kernels/lanes.h"

namespace headlab::kernels {

namespace {

// Runs `row(offset)` for each line of a last axis, `lines(offset, part)` for `width` neighbouring lines of an
// inner one.
template <class T, class Row, class Lines>
void along(Axis axis, double nanoseconds, const Row& row, const Lines& lines_of) {
  if (axis.n == 0) return;
  const Cost line = price<T>(nanoseconds, axis.n);
  if (axis.inner == 1) {
    parallel_for(axis.outer, grain_for(line), line, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) row(i * axis.n);
    });
    return;
  }
  const std::int64_t bundles = (axis.inner + width<T> - 1) / width<T>;
  const Cost bundle = price<T>(nanoseconds, axis.n * std::min(width<T>, axis.inner));
  parallel_for(axis.outer * bundles, grain_for(bundle), bundle, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t j = i % bundles * width<T>;
      const std::int64_t offset = i / bundles * axis.n * axis.inner + j;
      if constexpr (width < T >> 1) {
        if (axis.inner - j < width<T>) {
          lines_of(offset, FirstLanes{axis.inner - j});
          continue;
        }
      }
      lines_of(offset, WholeLanes{});
    }
  });
}

template <class T>
constexpr T lowest = -std::numeric_limits<T>::infinity();

template <class T>
T row_max(const T* x, std::int64_t n) {
  Lanes<T> m = broadcast(lowest<T>);
  for_lanes<T>(n, [&](std::int64_t j, auto part) { m = max(m, get(x + j, part, lowest<T>)); });
  return horizontal_max(m);
}

template <class T, class Part>
Lanes<T> lines_max(const T* x, Axis axis, Part part) {
  Lanes<T> m = broadcast(lowest<T>);
  for (std::int64_t k = 0; k < axis.n; ++k) m = max(m, get(x + k * axis.inner, part));
  return m;
}

template <class T>
void softmax_any(const T* x, T* y, Axis axis) {
  profile::moved<T>(2, axis.outer * axis.n * axis.inner);
  along<T>(
      axis, 0.5,
      [&](std::int64_t offset) {
        const T* from = x + offset;
        T* to = y + offset;
        const Lanes<T> m = broadcast(row_max(from, axis.n));
        Lanes<T> sum = broadcast(T{0});
        for_lanes<T>(axis.n, [&](std::int64_t j, auto part) {
          const Lanes<T> e = exp(get(from + j, part, lowest<T>) - m);
          sum = sum + e;
          put(to + j, e, part);
        });
        const Lanes<T> scale = broadcast(T{1} / horizontal_sum(sum));
        for_lanes<T>(axis.n,
                     [&](std::int64_t j, auto part) { put(to + j, get(to + j, part) * scale, part); });
      },
      [&](std::int64_t offset, auto part) {
        const T* from = x + offset;
        T* to = y + offset;
        const Lanes<T> m = lines_max(from, axis, part);
        Lanes<T> sum = broadcast(T{0});
        for (std::int64_t k = 0; k < axis.n; ++k) {
          const Lanes<T> e = exp(get(from + k * axis.inner, part) - m);
          sum = sum + e;
          put(to + k * axis.inner, e, part);
        }
        const Lanes<T> scale = broadcast(T{1}) / sum;
        for (std::int64_t k = 0; k < axis.n; ++k) {
          put(to + k * axis.inner, get(to + k * axis.inner, part) * scale, part);
        }
      });
}

template <class T>
void log_softmax_any(const T* x, T* y, Axis axis) {
  profile::moved<T>(2, axis.outer * axis.n * axis.inner);
  along<T>(
      axis, 0.5,
      [&](std::int64_t offset) {
        const T* from = x + offset;
        const Lanes<T> m = broadcast(row_max(from, axis.n));
        Lanes<T> sum = broadcast(T{0});
        for_lanes<T>(axis.n,
                     [&](std::int64_t j, auto part) { sum = sum + exp(get(from + j, part, lowest<T>) - m); });
        const Lanes<T> logarithm = log(broadcast(horizontal_sum(sum)));
        for_lanes<T>(axis.n, [&](std::int64_t j, auto part) {
          put(y + offset + j, (get(from + j, part) - m) - logarithm, part);
        });
      },
      [&](std::int64_t offset, auto part) {
        const T* from = x + offset;
        const Lanes<T> m = lines_max(from, axis, part);
        Lanes<T> sum = broadcast(T{0});
        for (std::int64_t k = 0; k < axis.n; ++k) sum = sum + exp(get(from + k * axis.inner, part) - m);
        const Lanes<T> logarithm = log(sum);
        for (std::int64_t k = 0; k < axis.n; ++k) {
          put(y + offset + k * axis.inner, (get(from + k * axis.inner, part) - m) - logarithm, part);
        }
      });
}

// Both backward passes: a sum of term(y, dy) along the axis, then dx (+)= result(y, dy, sum).
template <class T, class Term, class Result>
void backward_any(const T* y, const T* dy, T* dx, Axis axis, bool accumulate, double nanoseconds,
                  const Term& term, const Result& result) {
  profile::moved<T>(accumulate ? 4 : 3, axis.outer * axis.n * axis.inner);
  const auto write = [&](std::int64_t i, Lanes<T> sum, auto part) {
    const Lanes<T> g = result(get(y + i, part), get(dy + i, part), sum);
    put(dx + i, accumulate ? get(dx + i, part) + g : g, part);
  };
  along<T>(
      axis, nanoseconds,
      [&](std::int64_t offset) {
        Lanes<T> sum = broadcast(T{0});
        for_lanes<T>(axis.n, [&](std::int64_t j, auto part) {
          sum = term(get(y + offset + j, part), get(dy + offset + j, part), sum);
        });
        const Lanes<T> total = broadcast(horizontal_sum(sum));
        for_lanes<T>(axis.n, [&](std::int64_t j, auto part) { write(offset + j, total, part); });
      },
      [&](std::int64_t offset, auto part) {
        Lanes<T> sum = broadcast(T{0});
        for (std::int64_t k = 0; k < axis.n; ++k) {
          const std::int64_t i = offset + k * axis.inner;
          sum = term(get(y + i, part), get(dy + i, part), sum);
        }
        for (std::int64_t k = 0; k < axis.n; ++k) write(offset + k * axis.inner, sum, part);
      });
}

template <class T>
void softmax_backward_any(const T* y, const T* dy, T* dx, Axis axis, bool accumulate) {
  using V = Lanes<T>;
  backward_any(
      y, dy, dx, axis, accumulate, 0.2, [](V p, V g, V sum) { return fma(p, g, sum); },
      [](V p, V g, V sum) { return p * (g - sum); });
}
template <class T>
void log_softmax_backward_any(const T* y, const T* dy, T* dx, Axis axis, bool accumulate) {
  using V = Lanes<T>;
  backward_any(
      y, dy, dx, axis, accumulate, 0.4, [](V, V g, V sum) { return sum + g; },
      [](V p, V g, V sum) { return fnma(exp(p), sum, g); });
}

template <class T>
void column_sums_any(const T* x, std::int64_t rows, std::int64_t n, T* out, bool accumulate) {
  profile::moved<T>(1, rows * n);
  // out (+)= the rows [begin, end), with the running sums in the registers.
  const auto sum_rows = [n](const T* from, std::int64_t count, T* to, bool add) {
    for_lanes<T>(n, [&](std::int64_t j, auto part) {
      Lanes<T> sum = broadcast(T{0});
      for (std::int64_t i = 0; i < count; ++i) sum = sum + get(from + i * n + j, part);
      put(to + j, add ? get(to + j, part) + sum : sum, part);
    });
  };
  const std::int64_t chunk = chunk_rows(rows);
  const std::int64_t chunks = (rows + chunk - 1) / chunk;
  if (chunks <= 1) return sum_rows(x, rows, out, accumulate);
  Array partials(Shape{chunks, n}, dtype_of<T>);
  T* partial = partials.template data<T>();
  parallel_for(rows, chunk, price<T>(0.06, n), [&](std::int64_t begin, std::int64_t end) {
    sum_rows(x + begin * n, end - begin, partial + begin / chunk * n, false);
  });
  sum_rows(partial, chunks, out, accumulate);
}

}  // namespace

std::int64_t chunk_rows(std::int64_t rows) { return std::max<std::int64_t>(64, (rows + 31) / 32); }

void softmax(const float* x, float* y, Axis axis) { softmax_any(x, y, axis); }
void softmax(const double* x, double* y, Axis axis) { softmax_any(x, y, axis); }
void softmax_backward(const float* y, const float* dy, float* dx, Axis axis, bool accumulate) {
  softmax_backward_any(y, dy, dx, axis, accumulate);
}
void softmax_backward(const double* y, const double* dy, double* dx, Axis axis, bool accumulate) {
  softmax_backward_any(y, dy, dx, axis, accumulate);
}
void log_softmax(const float* x, float* y, Axis axis) { log_softmax_any(x, y, axis); }
void log_softmax(const double* x, double* y, Axis axis) { log_softmax_any(x, y, axis); }
void log_softmax_backward(const float* y, const float* dy, float* dx, Axis axis, bool accumulate) {
  log_softmax_backward_any(y, dy, dx, axis, accumulate);
}
void log_softmax_backward(const double* y, const double* dy, double* dx, Axis axis, bool accumulate) {
  log_softmax_backward_any(y, dy, dx, axis, accumulate);
}
void column_sums(const float* x, std::int64_t rows, std::int64_t n, float* out, bool accumulate) {
  column_sums_any(x, rows, n, out, accumulate);
}
void column_sums(const double* x, std::int64_t rows, std::int64_t n, double* out, bool accumulate) {
  column_sums_any(x, rows, n, out, accumulate);
}

}  // namespace headlab::kernels
