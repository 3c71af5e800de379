// Stochastic gradient descent with momentum.
#pragma once

#include "framework/optim/optimiser.h"

namespace headlab {

struct SgdOptions {
  double momentum = 0;
  bool nesterov = false;
  double weight_decay = 0;
};

/// w = w·(1 - lr·weight_decay), for parameters with decay; u = momentum·u + g; w -= lr·u, or lr·(g +
/// momentum·u) with Nesterov. As torch.optim.SGD without dampening, but for the weight decay, which is
/// decoupled from the gradient.
class Sgd final : public Optimiser {
 public:
  /// Errors name the option: momentum outside [0, 1), Nesterov without momentum, a negative weight_decay.
  explicit Sgd(ParameterBuffer& parameters, const SgdOptions& options = {});

 private:
  void update(const Task& task, Array& values, const Array& gradients,
              std::vector<Array>& moments) const override;
  SgdOptions options_;
};

}  // namespace headlab
