#include "framework/ops/arithmetic.h"

#include "framework/autograd/node.h"
#include "framework/kernels/broadcast.h"
#include "framework/kernels/reduce.h"

namespace headlab {

namespace {

// f(a, b) over the broadcast shape.
template <class F>
Array map(const Array& a, const Array& b, std::string_view op, F f) {
  check(a.dtype() == b.dtype(), op, "operands differ in type: {} of shape {} and {} of shape {}",
        name_of(a.dtype()), a.shape(), name_of(b.dtype()), b.shape());
  const Shape shape = a.shape() == b.shape() ? a.shape() : broadcast(a.shape(), b.shape(), op);
  return dispatch(a.dtype(), op, [&](auto zero) {
    using T = decltype(zero);
    Array y(shape, a.dtype());
    kernels::broadcast_map(kernels::plan_broadcast(a.shape(), b.shape(), shape), a.data<T>(), b.data<T>(),
                           y.data<T>(), f);
    return y;
  });
}

// f(x, number)
template <class F>
Array map(const Array& x, double number, std::string_view op, F f) {
  return dispatch(x.dtype(), op, [&](auto zero) {
    using T = decltype(zero);
    Array y(x.shape(), x.dtype());
    const T scalar = static_cast<T>(number);
    kernels::broadcast_map(kernels::plan_broadcast(x.shape(), Shape{}, x.shape()), x.data<T>(), &scalar,
                           y.data<T>(), f);
    return y;
  });
}

// Gives f(dy, a, b), summed to `shape` where the operand was stretched, to the sink.
template <class F>
void give(Sink& sink, const Shape& shape, const Array& dy, const Array& a, const Array& b, F f) {
  dispatch(dy.dtype(), "backward", [&](auto zero) {
    using T = decltype(zero);
    const auto plan = kernels::plan_broadcast(a.shape(), b.shape(), dy.shape());
    if (shape == dy.shape()) {
      const Sink::Destination to = sink.open();
      kernels::broadcast_map_backward(plan, dy.data<T>(), a.data<T>(), b.data<T>(), to.array.data<T>(),
                                      to.accumulate, f);
    } else {
      Array full(dy.shape(), dy.dtype());
      kernels::broadcast_map_backward(plan, dy.data<T>(), a.data<T>(), b.data<T>(), full.data<T>(), false, f);
      sink.add(kernels::sum_to(full, shape));
    }
  });
}
template <class F>
void give(Sink& sink, const Array& dy, const Array& a, double number, F f) {
  dispatch(dy.dtype(), "backward", [&](auto zero) {
    using T = decltype(zero);
    const Sink::Destination to = sink.open();
    const T scalar = static_cast<T>(number);
    kernels::broadcast_map_backward(kernels::plan_broadcast(a.shape(), Shape{}, dy.shape()), dy.data<T>(),
                                    a.data<T>(), &scalar, to.array.data<T>(), to.accumulate, f);
  });
}

constexpr auto plus = [](auto a, auto b) { return a + b; };
constexpr auto minus = [](auto a, auto b) { return a - b; };
constexpr auto times = [](auto a, auto b) { return a * b; };
constexpr auto over = [](auto a, auto b) { return a / b; };
constexpr auto minus_from = [](auto a, auto b) { return b - a; };
constexpr auto over_into = [](auto a, auto b) { return b / a; };

constexpr auto negated = [](auto g, auto, auto) { return -g; };
constexpr auto times_second = [](auto g, auto, auto b) { return g * b; };
constexpr auto over_second = [](auto g, auto, auto b) { return g / b; };
// ∂(a/b)/∂b = -a/b², as -(a/b)/b: b² may overflow or underflow where the gradient does not.
constexpr auto divisor_gradient = [](auto g, auto a, auto b) { return -(g * (a / b)) / b; };
constexpr auto scalar_divided_gradient = [](auto g, auto a, auto b) { return -(g * (b / a)) / a; };

}  // namespace

// y = a + b: da = Σ dy, db = Σ dy over the stretched axes.
Tensor add(const Tensor& a, const Tensor& b) {
  return record("add", map(a.value(), b.value(), "add", plus), {a, b},
                [a = a.shape(), b = b.shape()](const Array& dy, Sinks dx) {
                  if (dx[0]) dx[0].add(kernels::sum_to(dy, a));
                  if (dx[1]) dx[1].add(kernels::sum_to(dy, b));
                });
}
Tensor add(const Tensor& a, double b) {
  return record("add", map(a.value(), b, "add", plus), {a}, [](const Array& dy, Sinks dx) { dx[0].add(dy); });
}
Tensor add(double a, const Tensor& b) { return add(b, a); }

// y = a - b: da = Σ dy, db = -Σ dy.
Tensor sub(const Tensor& a, const Tensor& b) {
  return record("sub", map(a.value(), b.value(), "sub", minus), {a, b},
                [a = a.shape(), b = b.shape()](const Array& dy, Sinks dx) {
                  if (dx[0]) dx[0].add(kernels::sum_to(dy, a));
                  if (dx[1]) {
                    const Array total = kernels::sum_to(dy, b);
                    give(dx[1], b, total, total, total, negated);
                  }
                });
}
Tensor sub(const Tensor& a, double b) {
  return record("sub", map(a.value(), b, "sub", minus), {a},
                [](const Array& dy, Sinks dx) { dx[0].add(dy); });
}
Tensor sub(double a, const Tensor& b) {
  return record("sub", map(b.value(), a, "sub", minus_from), {b},
                [](const Array& dy, Sinks dx) { give(dx[0], dy, dy, 0, negated); });
}

// y = a b: da = Σ dy b, db = Σ dy a.
Tensor mul(const Tensor& a, const Tensor& b) {
  return record("mul", map(a.value(), b.value(), "mul", times), {a, b},
                [a_shape = a.shape(), b_shape = b.shape(), a = Saved(a, "mul", b.requires_grad()),
                 b = Saved(b, "mul", a.requires_grad())](const Array& dy, Sinks dx) {
                  if (dx[0]) give(dx[0], a_shape, dy, b.get(), b.get(), times_second);
                  if (dx[1]) give(dx[1], b_shape, dy, a.get(), a.get(), times_second);
                });
}
Tensor mul(const Tensor& a, double b) {
  return record("mul", map(a.value(), b, "mul", times), {a},
                [b](const Array& dy, Sinks dx) { give(dx[0], dy, dy, b, times_second); });
}
Tensor mul(double a, const Tensor& b) { return mul(b, a); }

// y = a / b: da = Σ dy / b, db = -Σ dy (a/b) / b.
Tensor div(const Tensor& a, const Tensor& b) {
  const bool both = b.requires_grad();
  return record("div", map(a.value(), b.value(), "div", over), {a, b},
                [a_shape = a.shape(), b_shape = b.shape(), a = Saved(a, "div", both),
                 b = Saved(b, "div", both || a.requires_grad())](const Array& dy, Sinks dx) {
                  if (dx[0]) give(dx[0], a_shape, dy, b.get(), b.get(), over_second);
                  if (dx[1]) give(dx[1], b_shape, dy, a.get(), b.get(), divisor_gradient);
                });
}
Tensor div(const Tensor& a, double b) {
  return record("div", map(a.value(), b, "div", over), {a},
                [b](const Array& dy, Sinks dx) { give(dx[0], dy, dy, b, over_second); });
}
// y = a / b: db = -dy (a/b) / b.
Tensor div(double a, const Tensor& b) {
  return record("div", map(b.value(), a, "div", over_into), {b},
                [a, b = Saved(b, "div")](const Array& dy, Sinks dx) {
                  give(dx[0], dy, b.get(), a, scalar_divided_gradient);
                });
}

Tensor neg(const Tensor& x) { return mul(x, -1.0); }

}  // namespace headlab
