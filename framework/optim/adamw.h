// AdamW (Loshchilov and Hutter 2019).
#pragma once

#include "framework/optim/optimiser.h"

namespace headlab {

struct AdamWOptions {
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0.01;
};

/// w = w·(1 - lr·weight_decay), for parameters with decay; m += (1 - beta1)·(g - m); v = beta2·v + (1 -
/// beta2)·g²; w -= lr·m̂ / (sqrt(v̂) + eps) with m̂ = m/(1 - beta1^t), v̂ = v/(1 - beta2^t), t the steps of that
/// parameter from 1. weight_decay = 0 is Adam.
class AdamW final : public Optimiser {
 public:
  /// Errors name the option: a beta outside [0, 1), eps not over 0, a negative weight_decay.
  explicit AdamW(ParameterBuffer& parameters, const AdamWOptions& options = {});

 private:
  void update(const Task& task, Array& values, const Array& gradients,
              std::vector<Array>& moments) const override;
  AdamWOptions options_;
};

}  // namespace headlab
