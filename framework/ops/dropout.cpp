#include "framework/ops/dropout.h"

#include "framework/autograd/node.h"

namespace headlab {

// y = f(key) x elementwise: dx = f(key) dy.
Tensor dropout(const Tensor& x, double p, DropoutKey key) {
  check(p >= 0 && p <= 1, "dropout", "p = {} is not in [0, 1]", p);
  const auto apply = [p, key](const Array& from, Array& to, bool accumulate) {
    dispatch(from.dtype(), "dropout", [&](auto zero) {
      using T = decltype(zero);
      kernels::dropout(key, p, from.data<T>(), to.data<T>(), from.size(), accumulate);
    });
  };
  if (p == 0) return x;
  Array y(x.shape(), x.dtype());
  apply(x.value(), y, false);
  return record("dropout", std::move(y), {x}, [apply](const Array& dy, Sinks dx) {
    const Sink::Destination to = dx[0].open();
    apply(dy, to.array, to.accumulate);
  });
}

}  // namespace headlab
