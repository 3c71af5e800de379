// Products of matrices, one or many at a time.
#pragma once

#include "framework/autograd/tensor.h"

namespace headlab {

/// a [..., m, k] · b [..., k, n] → [..., m, n]; the leading axes broadcast. f32 or f64, both of one type.
/// Errors: fewer than two axes, inner sizes that differ, leading axes that do not broadcast, different types.
Tensor matmul(const Tensor& a, const Tensor& b);

}  // namespace headlab
