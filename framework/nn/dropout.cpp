#include "framework/nn/dropout.h"

#include "framework/nn/step_context.h"
#include "framework/ops/dropout.h"

namespace headlab {

Dropout::Dropout(double p) : p_(p) { check(p >= 0 && p <= 1, "dropout", "p {} is not in [0, 1]", p); }

Tensor Dropout::operator()(const Tensor& x) {
  if (!training() || p_ == 0) return x;
  const std::int64_t per_example = x.rank() == 0 || x.dim(0) == 0 ? 0 : x.size() / x.dim(0);
  return dropout(x, p_, dropout_key(path(), per_example, calls_));
}

}  // namespace headlab
