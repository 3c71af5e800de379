// Dropout (Srivastava et al. 2014): zeros with probability p, the rest scaled by 1/(1-p).
#pragma once

#include "framework/autograd/tensor.h"
#include "framework/kernels/dropout.h"

namespace headlab {

/// Which elements are dropped follows from the key alone; backward makes the same pattern again. p = 0 is x
/// itself, p = 1 gives zeros. A dropped NaN is 0. f32 or f64, with the same pattern. Error: p is NaN or not
/// in [0, 1].
Tensor dropout(const Tensor& x, double p, DropoutKey key);

}  // namespace headlab
