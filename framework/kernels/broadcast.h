// Loops over two operands whose shapes broadcast: element i of the output meets one element of each operand.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <type_traits>

#include "framework/core/parallel.h"
#include "framework/core/profile.h"
#include "framework/core/shape.h"

namespace headlab::kernels {

/// Where the operands' elements lie, with neighbouring axes joined wherever both operands allow it. Equal
/// shapes are one run of the whole size; a row added to a matrix is one run a row.
struct BroadcastPlan {
  struct Axis {
    std::int64_t size = 1;
    std::int64_t a = 0, b = 0;  ///< steps in elements; 0: this operand repeats
  };
  std::array<Axis, Shape::max_rank> outer{};  ///< slowest first
  int outer_rank = 0;
  Axis inner;             ///< steps are 0 or 1
  std::int64_t size = 1;  ///< of the output
  /// Operands that are as large as the output: what is repeated comes from the cache.
  int reads() const;
};

/// Precondition: both shapes broadcast to `out`.
BroadcastPlan plan_broadcast(const Shape& a, const Shape& b, const Shape& out);

/// Calls run(first, count, a, b) for pieces of the output [first, first + count), with the operands'
/// positions of the first element, from several threads.
template <class Run>
void for_runs(const BroadcastPlan& plan, Cost per_element, const Run& run) {
  constexpr std::int64_t grain = 16384;
  parallel_for(plan.size, grain, per_element, [&](std::int64_t begin, std::int64_t end) {
    std::array<std::int64_t, Shape::max_rank> digit{};
    std::int64_t column = begin % plan.inner.size;
    std::int64_t row = begin / plan.inner.size;
    std::int64_t a = 0;
    std::int64_t b = 0;
    for (int k = plan.outer_rank - 1; k >= 0; --k) {
      const auto& axis = plan.outer[static_cast<std::size_t>(k)];
      digit[static_cast<std::size_t>(k)] = row % axis.size;
      a += row % axis.size * axis.a;
      b += row % axis.size * axis.b;
      row /= axis.size;
    }
    while (begin < end) {
      const std::int64_t count = std::min(end - begin, plan.inner.size - column);
      run(begin, count, a + column * plan.inner.a, b + column * plan.inner.b);
      begin += count;
      column = 0;
      for (int k = plan.outer_rank - 1; k >= 0; --k) {  // the next row
        const auto& axis = plan.outer[static_cast<std::size_t>(k)];
        auto& d = digit[static_cast<std::size_t>(k)];
        a += axis.a;
        b += axis.b;
        if (++d < axis.size) break;
        a -= d * axis.a;
        b -= d * axis.b;
        d = 0;
      }
    }
  });
}

namespace detail {
// Calls body with the two inner steps as compile-time numbers, so that the loops inside become vectors.
template <class Body>
void with_steps(const BroadcastPlan& plan, const Body& body) {
  using One = std::integral_constant<std::int64_t, 1>;
  using Zero = std::integral_constant<std::int64_t, 0>;
  if (plan.inner.a != 0 && plan.inner.b != 0) return body(One{}, One{});
  if (plan.inner.a != 0) return body(One{}, Zero{});
  if (plan.inner.b != 0) return body(Zero{}, One{});
  return body(Zero{}, Zero{});
}
}  // namespace detail

/// y[i] = [y[i] +] f(a[…], b[…]).
template <class T, class F>
void broadcast_map(const BroadcastPlan& plan, const T* a, const T* b, T* y, F f, bool accumulate = false) {
  constexpr Cost cost{.flops = 1, .bytes = 3 * sizeof(T)};
  profile::moved<T>(plan.reads() + (accumulate ? 2 : 1), plan.size);
  detail::with_steps(plan, [&](auto step_a, auto step_b) {
    for_runs(plan, cost, [&](std::int64_t first, std::int64_t count, std::int64_t at_a, std::int64_t at_b) {
      const T* pa = a + at_a;
      const T* pb = b + at_b;
      T* out = y + first;
      if (accumulate) {
        for (std::int64_t i = 0; i < count; ++i) out[i] += f(pa[i * step_a()], pb[i * step_b()]);
      } else {
        for (std::int64_t i = 0; i < count; ++i) out[i] = f(pa[i * step_a()], pb[i * step_b()]);
      }
    });
  });
}

/// dx[i] = [dx[i] +] f(dy[i], a[…], b[…]).
template <class T, class F>
void broadcast_map_backward(const BroadcastPlan& plan, const T* dy, const T* a, const T* b, T* dx,
                            bool accumulate, F f) {
  constexpr Cost cost{.flops = 2, .bytes = 5 * sizeof(T)};
  profile::moved<T>(plan.reads() + (accumulate ? 3 : 2), plan.size);
  detail::with_steps(plan, [&](auto step_a, auto step_b) {
    for_runs(plan, cost, [&](std::int64_t first, std::int64_t count, std::int64_t at_a, std::int64_t at_b) {
      const T* pa = a + at_a;
      const T* pb = b + at_b;
      const T* g = dy + first;
      T* out = dx + first;
      if (accumulate) {
        for (std::int64_t i = 0; i < count; ++i) out[i] += f(g[i], pa[i * step_a()], pb[i * step_b()]);
      } else {
        for (std::int64_t i = 0; i < count; ++i) out[i] = f(g[i], pa[i * step_a()], pb[i * step_b()]);
      }
    });
  });
}

}  // namespace headlab::kernels
