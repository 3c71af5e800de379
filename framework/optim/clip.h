// The norm of all gradients together, and its limit.
#pragma once

#include "framework/kernels/optimise.h"
#include "framework/optim/parameter_buffer.h"

namespace headlab {

/// The root of the sum of squares over all touched parameters, summed in f64 in a fixed order. Does not
/// overflow for finite gradients. Infinite or NaN when a gradient is.
double gradient_norm(const ParameterBuffer& parameters);

struct Clipping {
  double norm = 0;           ///< before clipping
  bool finite = true;        ///< false: the gradients are untouched and the caller must skip the step
  bool clipped = false;      ///< whether the scale is below 1
  GradientScale scale = {};  ///< min(1, limit / (norm + 1e-6)), as torch.nn.utils.clip_grad_norm_
};

/// What clipping would do. Changes nothing: meant for Optimiser::step(lr, clipping.scale). Error: the limit
/// is not over 0.
Clipping clipping_of(const ParameterBuffer& parameters, double limit);

/// Multiplies all touched gradients by clipping_of(parameters, limit).scale. Error: the limit is not over 0.
Clipping clip_gradients(ParameterBuffer& parameters, double limit);

}  // namespace headlab
