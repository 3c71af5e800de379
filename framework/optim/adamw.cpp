#include "framework/optim/adamw.h"

#include <cmath>

#include "framework/kernels/optimise.h"

namespace headlab {

namespace {
// By squaring, not by libm, whose last digit differs from machine to machine.
double power(double base, std::int64_t exponent) {
  double result = 1;
  for (; exponent > 0; exponent /= 2) {
    if (exponent % 2 == 1) result *= base;
    base *= base;
  }
  return result;
}
}  // namespace

AdamW::AdamW(ParameterBuffer& parameters, const AdamWOptions& options)
    : Optimiser(parameters, "adamw", {"m", "v"}), options_(options) {
  check(options.beta1 >= 0 && options.beta1 < 1, name(), "beta1 {} is not in [0, 1)", options.beta1);
  check(options.beta2 >= 0 && options.beta2 < 1, name(), "beta2 {} is not in [0, 1)", options.beta2);
  check(std::isfinite(options.eps) && options.eps > 0, name(), "eps {} is not a finite number over 0",
        options.eps);
  check(std::isfinite(options.weight_decay) && options.weight_decay >= 0, name(),
        "weight_decay {} is not a finite number of at least 0", options.weight_decay);
}

void AdamW::update(const Task& task, Array& values, const Array& gradients,
                   std::vector<Array>& moments) const {
  kernels::AdamWFactors factors;
  factors.beta1 = options_.beta1;
  factors.beta2 = options_.beta2;
  factors.eps = options_.eps;
  factors.keep = task.decay ? 1 - task.lr * options_.weight_decay : 1;
  factors.rate = task.lr / (1 - power(options_.beta1, task.step));
  factors.root = 1 / std::sqrt(1 - power(options_.beta2, task.step));
  factors.scale = task.scale;
  dispatch(values.dtype(), name(), [&](auto zero) {
    using T = decltype(zero);
    kernels::adamw(values.data<T>() + task.offset, gradients.data<T>() + task.offset,
                   moments[0].data<T>() + task.offset, moments[1].data<T>() + task.offset, task.size,
                   factors);
  });
}

}  // namespace headlab
