#include "framework/ops/softmax.h"

#include "framework/autograd/node.h"
#include "framework/kernels/rows.h"

namespace headlab {

namespace {
kernels::Axis axis_of(const Shape& shape, int axis, const char* op) {
  const int at = shape.checked_axis(axis, op);
  return {shape.product(0, at), shape[at], shape.product(at + 1, shape.rank())};
}
}  // namespace

// y_j = exp(x_j)/S, so ∂y_j/∂x_k = y_j·(δ_jk - y_k) and dx_k = Σ_j dy_j·∂y_j/∂x_k = y_k·(dy_k - Σ_j
// dy_j·y_j).
Tensor softmax(const Tensor& x, int axis) {
  const kernels::Axis line = axis_of(x.shape(), axis, "softmax");
  Array y(x.shape(), x.dtype());
  dispatch(x.dtype(), "softmax", [&](auto zero) {
    using T = decltype(zero);
    kernels::softmax(x.value().data<T>(), y.data<T>(), line);
  });
  return record(
      "softmax", y, {x},
      [y, line](const Array& dy, Sinks dx) {
        dispatch(y.dtype(), "softmax", [&](auto zero) {
          using T = decltype(zero);
          const Sink::Destination to = dx[0].open();
          kernels::softmax_backward(y.data<T>(), dy.data<T>(), to.array.data<T>(), line, to.accumulate);
        });
      },
      Keeps::output);
}

// y_j = x_j - log S, so ∂y_j/∂x_k = δ_jk - exp(y_k) and dx_k = dy_k - exp(y_k)·Σ_j dy_j.
Tensor log_softmax(const Tensor& x, int axis) {
  const kernels::Axis line = axis_of(x.shape(), axis, "log_softmax");
  Array y(x.shape(), x.dtype());
  dispatch(x.dtype(), "log_softmax", [&](auto zero) {
    using T = decltype(zero);
    kernels::log_softmax(x.value().data<T>(), y.data<T>(), line);
  });
  return record(
      "log_softmax", y, {x},
      [y, line](const Array& dy, Sinks dx) {
        dispatch(y.dtype(), "log_softmax", [&](auto zero) {
          using T = decltype(zero);
          const Sink::Destination to = dx[0].open();
          kernels::log_softmax_backward(y.data<T>(), dy.data<T>(), to.array.data<T>(), line, to.accumulate);
        });
      },
      Keeps::output);
}

}  // namespace headlab
