#include "framework/ops/linear.h"

#include "framework/autograd/node.h"
#include "framework/kernels/rows.h"
#include "framework/ops/linear_parts.h"

namespace headlab {

namespace detail {

using kernels::Transpose;

void check_linear(const Shape& x, DType dtype, const Tensor& weight, const Tensor& bias) {
  check(weight.rank() == 2, "linear", "weight of shape {}, it needs [out, in]", weight.shape());
  const std::int64_t out = weight.dim(0);
  const std::int64_t in = weight.dim(1);
  check(x.rank() > 0 && x[x.rank() - 1] == in, "linear",
        "x of shape {} and weight of shape {}: x needs a last axis of {}", x, weight.shape(), in);
  check(dtype == weight.dtype(), "linear", "x is {}, weight is {}", name_of(dtype), name_of(weight.dtype()));
  if (!bias) return;
  check(bias.shape() == Shape{out}, "linear", "bias of shape {} and weight of shape {}: bias needs [{}]",
        bias.shape(), weight.shape(), out);
  check(bias.dtype() == dtype, "linear", "bias is {}, x is {}", name_of(bias.dtype()), name_of(dtype));
}

namespace {
std::int64_t rows_of(const Array& x) { return x.shape().product(0, x.rank() - 1); }
}  // namespace

Array linear_value(const Array& x, const Tensor& weight, const Tensor& bias) {
  Array y(x.shape().with(-1, weight.dim(0)), x.dtype());
  linear_into(y, x, weight, bias);
  return y;
}

void linear_into(Array& y, const Array& x, const Tensor& weight, const Tensor& bias,
                 const kernels::GemmFinish& finish) {
  const std::int64_t out = weight.dim(0);
  const std::int64_t in = weight.dim(1);
  dispatch(x.dtype(), "linear", [&](auto zero) {
    using T = decltype(zero);
    kernels::gemm_bias_parallel(Transpose::no, Transpose::yes, rows_of(x), out, in, x.data<T>(), in,
                                weight.value().data<T>(), in, bias ? bias.value().data<T>() : nullptr,
                                y.data<T>(), out, finish);
  });
}

void give_linear_x(Sink& dx, const Array& dy, const Array& weight) {
  const std::int64_t out = weight.dim(0);
  const std::int64_t in = weight.dim(1);
  dispatch(dy.dtype(), "linear", [&](auto zero) {
    using T = decltype(zero);
    const Sink::Destination to = dx.open();
    kernels::gemm_parallel(Transpose::no, Transpose::no, rows_of(dy), in, out, dy.data<T>(), out,
                           weight.data<T>(), in, static_cast<T>(to.beta()), to.array.data<T>(), in);
  });
}

void give_linear_weight(Sink& dw, const Array& dy, const Array& x) {
  const std::int64_t out = dy.dim(-1);
  const std::int64_t in = x.dim(-1);
  dispatch(dy.dtype(), "linear", [&](auto zero) {
    using T = decltype(zero);
    const Sink::Destination to = dw.open();
    kernels::gemm_parallel(Transpose::yes, Transpose::no, out, in, rows_of(dy), dy.data<T>(), out,
                           x.data<T>(), in, static_cast<T>(to.beta()), to.array.data<T>(), in);
  });
}

void give_linear_bias(Sink& db, const Array& dy) {
  dispatch(dy.dtype(), "linear", [&](auto zero) {
    using T = decltype(zero);
    const Sink::Destination to = db.open();
    kernels::column_sums(dy.data<T>(), rows_of(dy), dy.dim(-1), to.array.data<T>(), to.accumulate);
  });
}

}  // namespace detail

Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  detail::check_linear(x.shape(), x.dtype(), weight, bias);
  Array y = detail::linear_value(x.value(), weight, bias);
  return record("linear", std::move(y), {x, weight, bias},
                [x = Saved(x, "linear", weight.requires_grad()),
                 weight = Saved(weight, "linear", x.requires_grad())](const Array& dy, Sinks dx) {
                  if (dx[0]) detail::give_linear_x(dx[0], dy, weight.get());
                  if (dx[1]) detail::give_linear_weight(dx[1], dy, x.get());
                  if (dx[2]) detail::give_linear_bias(dx[2], dy);
                });
}

}  // namespace headlab
