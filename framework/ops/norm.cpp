#include "framework/ops/norm.h"

#include <cmath>

#include "framework/autograd/node.h"
#include "framework/kernels/norms.h"
#include "framework/kernels/rows.h"

namespace headlab {

namespace {

void check_parameter(const Tensor& parameter, const char* role, const Tensor& x, const char* op) {
  if (!parameter) return;
  const Shape wanted{x.shape()[x.rank() - 1]};
  check(parameter.shape() == wanted, op, "{} of shape {} for x of shape {}; it needs {}", role,
        parameter.shape(), x.shape(), wanted);
  check(parameter.dtype() == x.dtype(), op, "{} is {}, x is {}", role, name_of(parameter.dtype()),
        name_of(x.dtype()));
}

template <class T>
const T* data_or_null(const Array& array) {
  return array ? array.data<T>() : nullptr;
}

Array value_of(const Tensor& tensor) { return tensor ? tensor.value() : Array(); }

// The derivation of the backward pass stands in framework/kernels/norms.cpp. Only x, the gain and two numbers
// a row are kept.
Tensor normalise(kernels::Norm kind, const char* op, const Tensor& x, const Tensor& gain, const Tensor& bias,
                 double eps) {
  check(x.rank() > 0, op, "x needs at least one axis, not shape {}", x.shape());
  check(std::isfinite(eps) && eps > 0, op, "eps {} is not a finite number over 0", eps);
  check_parameter(gain, "gain", x, op);
  check_parameter(bias, "bias", x, op);
  const kernels::Rows rows{x.shape().product(0, x.rank() - 1), x.shape()[x.rank() - 1]};
  Array y(x.shape(), x.dtype());
  Array mean(Shape{rows.rows}, x.dtype());
  Array r(Shape{rows.rows}, x.dtype());
  dispatch(x.dtype(), op, [&](auto zero) {
    using T = decltype(zero);
    kernels::norm(kind, x.value().data<T>(), data_or_null<T>(value_of(gain)), data_or_null<T>(value_of(bias)),
                  static_cast<T>(eps), y.data<T>(), mean.data<T>(), r.data<T>(), rows);
  });
  const auto backward = [kind, rows, mean, r, x = Saved(x, op), gain = Saved(gain, op)](const Array& dy,
                                                                                        Sinks dx) {
    dispatch(dy.dtype(), "norm", [&](auto zero) {
      using T = decltype(zero);
      const std::int64_t chunk = kernels::chunk_rows(rows.rows);
      const std::int64_t chunks = (rows.rows + chunk - 1) / chunk;
      Array gain_partials = dx[1] ? Array(Shape{chunks, rows.n}, dy.dtype()) : Array();
      Array bias_partials = dx[2] ? Array(Shape{chunks, rows.n}, dy.dtype()) : Array();
      kernels::NormGradients<T> out;
      if (dx[0]) {
        const Sink::Destination to = dx[0].open();
        out.dx = to.array.data<T>();
        out.accumulate = to.accumulate;
      }
      if (gain_partials) out.gain_partials = gain_partials.data<T>();
      if (bias_partials) out.bias_partials = bias_partials.data<T>();
      kernels::norm_backward(kind, x.get().data<T>(), data_or_null<T>(gain.get()), mean.data<T>(),
                             r.data<T>(), dy.data<T>(), out, rows);
      const auto merge = [&](Sink& sink, const Array& partials) {
        if (!sink) return;
        const Sink::Destination to = sink.open();
        kernels::column_sums(partials.data<T>(), chunks, rows.n, to.array.data<T>(), to.accumulate);
      };
      merge(dx[1], gain_partials);
      merge(dx[2], bias_partials);
    });
  };
  return record(op, std::move(y), {x, gain, bias}, backward);
}

}  // namespace

Tensor layer_norm(const Tensor& x, const Tensor& gain, const Tensor& bias, double eps) {
  return normalise(kernels::Norm::layer, "layer_norm", x, gain, bias, eps);
}

Tensor rms_norm(const Tensor& x, const Tensor& gain, double eps) {
  return normalise(kernels::Norm::rms, "rms_norm", x, gain, {}, eps);
}

}  // namespace headlab
