#include "framework/optim/sgd.h"

#include <cmath>

#include "framework/kernels/optimise.h"

namespace headlab {

Sgd::Sgd(ParameterBuffer& parameters, const SgdOptions& options)
    : Optimiser(parameters, "sgd",
                options.momentum == 0 ? std::vector<std::string>{} : std::vector<std::string>{"u"}),
      options_(options) {
  check(options.momentum >= 0 && options.momentum < 1, name(), "momentum {} is not in [0, 1)",
        options.momentum);
  check(!options.nesterov || options.momentum > 0, name(), "nesterov needs a momentum over 0");
  check(std::isfinite(options.weight_decay) && options.weight_decay >= 0, name(),
        "weight_decay {} is not a finite number of at least 0", options.weight_decay);
}

void Sgd::update(const Task& task, Array& values, const Array& gradients, std::vector<Array>& moments) const {
  const double keep = task.decay ? 1 - task.lr * options_.weight_decay : 1;
  const kernels::SgdFactors factors{task.lr, options_.momentum, options_.nesterov, keep, task.scale};
  dispatch(values.dtype(), name(), [&](auto zero) {
    using T = decltype(zero);
    T* velocity = moments.empty() ? nullptr : moments[0].data<T>() + task.offset;
    kernels::sgd(values.data<T>() + task.offset, gradients.data<T>() + task.offset, velocity, task.size,
                 factors);
  });
}

}  // namespace headlab
