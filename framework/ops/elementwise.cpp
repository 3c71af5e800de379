#include "framework/ops/elementwise.h"

#include "framework/autograd/node.h"
#include "framework/kernels/elementwise.h"

namespace headlab {

namespace {

template <class Function>
void give(Sink& sink, const Array& kept, const Array& dy) {
  dispatch(dy.dtype(), "backward", [&](auto zero) {
    using T = decltype(zero);
    const Sink::Destination to = sink.open();
    kernels::apply_backward<Function>(kept.data<T>(), dy.data<T>(), to.array.data<T>(), dy.size(),
                                      to.accumulate);
  });
}

// y = f(x): dx = dy f'(x), from x or from y, whichever the function's derivative is cheaper in.
template <class Function>
Tensor map(const Tensor& x, std::string_view op) {
  const Array& in = x.value();
  Array y = dispatch(in.dtype(), op, [&](auto zero) {
    using T = decltype(zero);
    Array out(in.shape(), in.dtype());
    kernels::apply<Function>(in.data<T>(), out.data<T>(), in.size());
    return out;
  });
  if constexpr (Function::keeps_output) {
    return record(
        op, y, {x}, [y](const Array& dy, Sinks dx) { give<Function>(dx[0], y, dy); }, Keeps::output);
  } else {
    return record(op, std::move(y), {x},
                  [x = Saved(x, op)](const Array& dy, Sinks dx) { give<Function>(dx[0], x.get(), dy); });
  }
}

}  // namespace

Tensor exp(const Tensor& x) { return map<kernels::Exp>(x, "exp"); }
Tensor sqrt(const Tensor& x) { return map<kernels::Sqrt>(x, "sqrt"); }
Tensor relu(const Tensor& x) { return map<kernels::Relu>(x, "relu"); }
Tensor sigmoid(const Tensor& x) { return map<kernels::Sigmoid>(x, "sigmoid"); }
Tensor tanh(const Tensor& x) { return map<kernels::Tanh>(x, "tanh"); }
Tensor log(const Tensor& x) { return map<kernels::Log>(x, "log"); }
Tensor silu(const Tensor& x) { return map<kernels::Silu>(x, "silu"); }
Tensor softplus(const Tensor& x) { return map<kernels::Softplus>(x, "softplus"); }
Tensor gelu(const Tensor& x) { return map<kernels::Gelu>(x, "gelu"); }
Tensor gelu_exact(const Tensor& x) { return map<kernels::GeluExact>(x, "gelu_exact"); }

}  // namespace headlab
