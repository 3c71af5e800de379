#include "framework/kernels/losses.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "framework/core/parallel.h"
#include "framework/core/profile.h"
#include "framework/kernels/lanes.h"

namespace headlab::kernels {

namespace {

// Scores that are looked at together: they fit the first-level cache, so memory is read once.
constexpr std::int64_t block = 1024;
constexpr std::int64_t elements = 16384;  // of a chunk of the elementwise loops

template <class T>
struct LogSum {
  T top, log_sum;
};

// Block by block: when a block has a larger maximum, what was summed so far shrinks by exp(old - new).
template <class T>
LogSum<T> log_sum_exp(const T* x, std::int64_t n) {
  using V = Lanes<T>;
  constexpr T lowest = -std::numeric_limits<T>::infinity();
  T top = lowest;
  T sum = 0;
  for (std::int64_t from = 0; from < n; from += block) {
    const std::int64_t count = std::min(block, n - from);
    V m = broadcast(top);
    for_lanes<T>(count, [&](std::int64_t j, auto part) { m = max(m, get(x + from + j, part, lowest)); });
    const T larger = horizontal_max(m);
    if (larger == lowest) continue;  // nothing but -infinity so far
    const V base = broadcast(larger);
    V sums = broadcast(T{0});
    for_lanes<T>(
        count, [&](std::int64_t j, auto part) { sums = sums + exp(get(x + from + j, part, lowest) - base); });
    sum = from == 0 ? T{0} : sum * exp_of(top - larger);
    sum += horizontal_sum(sums);
    top = larger;
  }
  return {top, log_of(sum)};
}

template <class T>
void cross_entropy_any(const T* x, Scores scores, T* loss, T* top, T* log_sum) {
  using V = Lanes<T>;
  const std::int64_t n = scores.classes;
  const Cost cost = price<T>(0.7, n);
  profile::moved<T>(1, scores.rows * n);
  const T smoothing = static_cast<T>(scores.smoothing);
  const T share = static_cast<T>(scores.smoothing / static_cast<double>(n));
  const T sure = static_cast<T>(1 - scores.smoothing);
  parallel_for(scores.rows, grain_for(cost), cost, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t target = scores.targets[i];
      loss[i] = top[i] = log_sum[i] = 0;
      if (target == scores.ignored) continue;
      const T* row = x + i * n;
      const LogSum<T> whole = log_sum_exp(row, n);
      top[i] = whole.top;
      log_sum[i] = whole.log_sum;
      const T gap = whole.top - row[target];
      if (smoothing == 0) {
        loss[i] = whole.log_sum + gap;
        continue;
      }
      V gaps = broadcast(T{0});
      const V base = broadcast(whole.top);
      for_lanes<T>(n,
                   [&](std::int64_t j, auto part) { gaps = gaps + only(base - get(row + j, part), part); });
      loss[i] = whole.log_sum + (sure * gap + share * horizontal_sum(gaps));
    }
  });
}

template <class T>
void cross_entropy_backward_any(const T* x, Scores scores, const T* top, const T* log_sum, T scale, T* dx,
                                bool accumulate) {
  using V = Lanes<T>;
  const std::int64_t n = scores.classes;
  const Cost cost = price<T>(0.5, n);
  profile::moved<T>(accumulate ? 3 : 2, scores.rows * n);
  const V share = broadcast(static_cast<T>(scores.smoothing / static_cast<double>(n)));
  const T sure = scale * static_cast<T>(1 - scores.smoothing);
  parallel_for(scores.rows, grain_for(cost), cost, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      T* to = dx + i * n;
      if (scores.targets[i] == scores.ignored) {
        if (!accumulate) std::fill_n(to, n, T{0});
        continue;
      }
      const T* row = x + i * n;
      const V m = broadcast(top[i]);
      const V l = broadcast(log_sum[i]);
      const V factor = broadcast(scale);
      for_lanes<T>(n, [&](std::int64_t j, auto part) {
        const V g = factor * (exp((get(row + j, part) - m) - l) - share);
        put(to + j, accumulate ? get(to + j, part) + g : g, part);
      });
      to[scores.targets[i]] -= sure;
    }
  });
}

template <class T>
double squared_distance_any(const T* a, const T* b, std::int64_t n) {
  using V = Lanes<T>;
  profile::moved<T>(2, n);
  std::vector<double> partials(static_cast<std::size_t>((n + elements - 1) / elements));
  parallel_for(n, elements, price<T>(0.1, 1), [&](std::int64_t begin, std::int64_t end) {
    V sum = broadcast(T{0});
    for_lanes<T>(end - begin, [&](std::int64_t j, auto part) {
      const V d = get(a + begin + j, part) - get(b + begin + j, part);
      sum = fma(d, d, sum);
    });
    partials[static_cast<std::size_t>(begin / elements)] = static_cast<double>(horizontal_sum(sum));
  });
  double total = 0;
  for (const double partial : partials) total += partial;
  return total;
}

template <class T>
void scaled_difference_any(const T* a, const T* b, T scale, T* out, std::int64_t n, bool accumulate) {
  using V = Lanes<T>;
  const V factor = broadcast(scale);
  profile::moved<T>(accumulate ? 4 : 3, n);
  parallel_for(n, elements, price<T>(0.15, 1), [&](std::int64_t begin, std::int64_t end) {
    for_lanes<T>(end - begin, [&](std::int64_t j, auto part) {
      T* to = out + begin + j;
      const V g = factor * (get(a + begin + j, part) - get(b + begin + j, part));
      put(to, accumulate ? get(to, part) + g : g, part);
    });
  });
}

}  // namespace

void cross_entropy(const float* x, Scores scores, float* loss, float* top, float* log_sum) {
  cross_entropy_any(x, scores, loss, top, log_sum);
}
void cross_entropy(const double* x, Scores scores, double* loss, double* top, double* log_sum) {
  cross_entropy_any(x, scores, loss, top, log_sum);
}
void cross_entropy_backward(const float* x, Scores scores, const float* top, const float* log_sum,
                            float scale, float* dx, bool accumulate) {
  cross_entropy_backward_any(x, scores, top, log_sum, scale, dx, accumulate);
}
void cross_entropy_backward(const double* x, Scores scores, const double* top, const double* log_sum,
                            double scale, double* dx, bool accumulate) {
  cross_entropy_backward_any(x, scores, top, log_sum, scale, dx, accumulate);
}
double squared_distance(const float* a, const float* b, std::int64_t n) {
  return squared_distance_any(a, b, n);
}
double squared_distance(const double* a, const double* b, std::int64_t n) {
  return squared_distance_any(a, b, n);
}
void scaled_difference(const float* a, const float* b, float scale, float* out, std::int64_t n,
                       bool accumulate) {
  scaled_difference_any(a, b, scale, out, n, accumulate);
}
void scaled_difference(const double* a, const double* b, double scale, double* out, std::int64_t n,
                       bool accumulate) {
  scaled_difference_any(a, b, scale, out, n, accumulate);
}

}  // namespace headlab::kernels
