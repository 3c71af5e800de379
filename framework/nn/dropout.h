// Dropout (Srivastava et al. 2014) as a layer: on in training mode, off in evaluation mode.
#pragma once

#include "framework/nn/module.h"

namespace headlab {

class Dropout : public Module {
 public:
  /// Error: p outside [0, 1].
  explicit Dropout(double p);
  /// x [B, ...]: kept elements are scaled by 1/(1 − p).
  Tensor operator()(const Tensor& x);

 private:
  double p_;
  std::uint64_t calls_ = 0;
};

}  // namespace headlab
