#include "framework/ops/reduction.h"

#include "framework/autograd/node.h"
#include "framework/core/parallel.h"
#include "framework/kernels/broadcast.h"
#include "framework/kernels/maximum.h"
#include "framework/kernels/permute.h"
#include "framework/kernels/reduce.h"

namespace headlab {

namespace {

void check_type(const Tensor& x, std::string_view op) {
  dispatch(x.dtype(), op, [](auto) {});
}

// y = Σ x / divisor: every element of x that went into y[k] gets dx = dy[k] / divisor.
Tensor sum_over(const Tensor& x, kernels::Axes axes, bool keep_axes, double divisor, std::string_view op) {
  check_type(x, op);
  const Shape kept = axes.kept(x.shape());
  const Array y = kernels::sum_axes(x.value(), axes, divisor);
  return record(op, keep_axes ? y : y.reshape(axes.dropped(x.shape())), {x},
                [shape = x.shape(), kept, divisor](const Array& dy, Sinks dx) {
                  dispatch(dy.dtype(), "backward", [&](auto zero) {
                    using T = decltype(zero);
                    const T* g = dy.data<T>();
                    const T by = static_cast<T>(divisor);
                    Array share;
                    if (divisor != 1) {
                      share = Array(dy.shape(), dy.dtype());
                      kernels::broadcast_map(kernels::plan_broadcast(dy.shape(), Shape{}, dy.shape()), g, &by,
                                             share.data<T>(), [](T a, T b) { return a / b; });
                      g = share.data<T>();
                    }
                    const Sink::Destination to = dx[0].open();
                    kernels::broadcast_map(
                        kernels::plan_broadcast(kept, kept, shape), g, g, to.array.data<T>(),
                        [](T a, T) { return a; }, to.accumulate);
                  });
                });
}

// Which element of x came first in each maximum, beside the maxima.
struct Maxima {
  Array values;  // of the kept shape
  Array places;  // i64, flat indices into x
};

template <class T>
Maxima maxima(const Array& x, kernels::Axes axes) {
  const Shape& shape = x.shape();
  int from = 0;
  while (from < shape.rank() && !axes.has(from)) ++from;
  int to = shape.rank();
  while (to > from && !axes.has(to - 1)) --to;
  bool together = true;
  for (int i = from; i < to; ++i) together = together && (axes.has(i) || shape[i] == 1);
  const std::int64_t inner = shape.product(to, shape.rank());
  const std::int64_t reduced = axes.count(shape);
  const std::int64_t outputs = axes.kept(shape).size();
  // A few tall columns are rows after a transposition, and rows can be shared among threads.
  if (inner > 1 && outputs < 1024 && reduced > 1024) together = false;

  Maxima result{Array(axes.kept(shape), x.dtype()), Array(axes.kept(shape), DType::i64)};
  auto* place = result.places.data<std::int64_t>();
  if (together) {
    kernels::maximum(x.data<T>(), shape.product(0, from), reduced, inner, result.values.data<T>(), place);
    for (std::int64_t k = 0; k < result.places.size(); ++k) {
      place[k] = (k / inner * reduced + place[k]) * inner + k % inner;
    }
    return result;
  }
  // Bring the axes to the back, where they are one row each.
  std::vector<int> order;
  for (int i = 0; i < shape.rank(); ++i) {
    if (!axes.has(i)) order.push_back(i);
  }
  const auto kept_count = order.size();
  for (int i = 0; i < shape.rank(); ++i) {
    if (axes.has(i)) order.push_back(i);
  }
  Array rows({outputs, reduced}, x.dtype());
  kernels::permute(x, order, rows, false);
  kernels::maximum(rows.data<T>(), outputs, reduced, 1, result.values.data<T>(), place);
  for (std::int64_t k = 0; k < result.places.size(); ++k) {
    std::int64_t flat = 0;
    std::int64_t rest = place[k];
    for (std::size_t i = order.size(); i-- > 0;) {
      if (i + 1 == kept_count) rest = k;  // the reduced axes are done, the kept ones follow
      const std::int64_t n = shape[order[i]];
      flat += rest % n * shape.product(order[i] + 1, shape.rank());
      rest /= n;
    }
    place[k] = flat;
  }
  return result;
}

// y[k] = x[place[k]]: dx[place[k]] += dy[k]; places differ, all other elements get nothing.
Tensor max_over(const Tensor& x, kernels::Axes axes, bool keep_axes) {
  check_type(x, "max");
  check(axes.count(x.shape()) > 0, "max", "nothing to take the maximum of in shape {}", x.shape());
  const Maxima found =
      dispatch(x.dtype(), "max", [&](auto zero) { return maxima<decltype(zero)>(x.value(), axes); });
  return record("max", keep_axes ? found.values : found.values.reshape(axes.dropped(x.shape())), {x},
                [places = found.places](const Array& dy, Sinks dx) {
                  const Sink::Destination to = dx[0].open();
                  if (!to.accumulate) to.array.zero();
                  dispatch(dy.dtype(), "backward", [&](auto zero) {
                    using T = decltype(zero);
                    const T* g = dy.data<T>();
                    const auto* place = places.data<std::int64_t>();
                    T* out = to.array.data<T>();
                    constexpr Cost cost{.flops = 4, .bytes = 40};
                    parallel_for(dy.size(), 4096, cost, [&](std::int64_t begin, std::int64_t end) {
                      for (std::int64_t k = begin; k < end; ++k) out[place[k]] += g[k];
                    });
                  });
                });
}

}  // namespace

Tensor sum(const Tensor& x) { return sum_over(x, kernels::Axes::all(x.shape()), false, 1, "sum"); }
Tensor sum(const Tensor& x, const AxisList& axes, bool keep_axes) {
  return sum_over(x, kernels::Axes(axes.axes(), x.shape(), "sum"), keep_axes, 1, "sum");
}

Tensor mean(const Tensor& x) {
  return sum_over(x, kernels::Axes::all(x.shape()), false, static_cast<double>(x.size()), "mean");
}
Tensor mean(const Tensor& x, const AxisList& axes, bool keep_axes) {
  const kernels::Axes over(axes.axes(), x.shape(), "mean");
  return sum_over(x, over, keep_axes, static_cast<double>(over.count(x.shape())), "mean");
}

Tensor max(const Tensor& x) { return max_over(x, kernels::Axes::all(x.shape()), false); }
Tensor max(const Tensor& x, const AxisList& axes, bool keep_axes) {
  return max_over(x, kernels::Axes(axes.axes(), x.shape(), "max"), keep_axes);
}

}  // namespace headlab
