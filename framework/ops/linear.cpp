#include "framework/ops/linear.h"

#include "framework/autograd/node.h"
#include "framework/kernels/gemm.h"
#include "framework/kernels/rows.h"

namespace headlab {

// y = x·Wᵀ + b, so dx = dy·W, dW = dyᵀ·x and db = Σ_rows dy.
Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  using kernels::Transpose;
  check(weight.rank() == 2, "linear", "weight of shape {}, it needs [out, in]", weight.shape());
  const std::int64_t out = weight.dim(0);
  const std::int64_t in = weight.dim(1);
  check(x.rank() > 0 && x.dim(-1) == in, "linear",
        "x of shape {} and weight of shape {}: x needs a last axis of {}", x.shape(), weight.shape(), in);
  check(x.dtype() == weight.dtype(), "linear", "x is {}, weight is {}", name_of(x.dtype()),
        name_of(weight.dtype()));
  if (bias) {
    check(bias.shape() == Shape{out}, "linear", "bias of shape {} and weight of shape {}: bias needs [{}]",
          bias.shape(), weight.shape(), out);
    check(bias.dtype() == x.dtype(), "linear", "bias is {}, x is {}", name_of(bias.dtype()),
          name_of(x.dtype()));
  }
  const std::int64_t rows = x.shape().product(0, x.rank() - 1);
  Array y(x.shape().with(-1, out), x.dtype());
  dispatch(x.dtype(), "linear", [&](auto zero) {
    using T = decltype(zero);
    kernels::gemm_bias_parallel(Transpose::no, Transpose::yes, rows, out, in, x.value().data<T>(), in,
                                weight.value().data<T>(), in, bias ? bias.value().data<T>() : nullptr,
                                y.data<T>(), out);
  });
  return record(
      "linear", std::move(y), {x, weight, bias},
      [x = Saved(x, "linear", weight.requires_grad()), weight = Saved(weight, "linear", x.requires_grad()),
       rows, in, out](const Array& dy, Sinks dx) {
        dispatch(dy.dtype(), "linear", [&](auto zero) {
          using T = decltype(zero);
          const T* g = dy.data<T>();
          if (dx[0]) {
            const Sink::Destination to = dx[0].open();
            kernels::gemm_parallel(Transpose::no, Transpose::no, rows, in, out, g, out,
                                   weight.get().data<T>(), in, static_cast<T>(to.beta()), to.array.data<T>(),
                                   in);
          }
          if (dx[1]) {
            const Sink::Destination to = dx[1].open();
            kernels::gemm_parallel(Transpose::yes, Transpose::no, out, in, rows, g, out, x.get().data<T>(),
                                   in, static_cast<T>(to.beta()), to.array.data<T>(), in);
          }
          if (dx[2]) {
            const Sink::Destination to = dx[2].open();
            kernels::column_sums(g, rows, out, to.array.data<T>(), to.accumulate);
          }
        });
      });
}

}  // namespace headlab
