// A linear map of the last axis.
#pragma once

#include "framework/autograd/tensor.h"

namespace headlab {

/// x·weightᵀ + bias: x [..., in], weight [out, in], bias [out] or undefined → [..., out]. f32 or f64, all of
/// one type. A row of the result depends on that row of x alone, bit for bit. Errors: shapes or types that do
/// not fit.
Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias = {});

}  // namespace headlab
