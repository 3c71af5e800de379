// The norm of all gradients together, and its limit.
#pragma once

#include "framework/optim/parameter_buffer.h"

namespace headlab {

/// The root of the sum of squares over all touched parameters, summed in f64 in a fixed order. Does not
/// overflow for finite gradients. Infinite or NaN when a gradient is.
double gradient_norm(const ParameterBuffer& parameters);

struct Clipping {
  double norm = 0;       ///< before clipping
  bool finite = true;    ///< false: the gradients are untouched and the caller must skip the step
  bool clipped = false;  ///< whether the gradients were scaled down
};

/// Multiplies all touched gradients by min(1, limit / (norm + 1e-6)), as torch.nn.utils.clip_grad_norm_.
/// Error: the limit is not over 0.
Clipping clip_gradients(ParameterBuffer& parameters, double limit);

}  // namespace headlab
