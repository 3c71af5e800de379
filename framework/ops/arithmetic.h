// Addition, subtraction, multiplication and division of tensors and numbers. framework/ops/operators.h has
// them as + - * /.
//
// Two tensors broadcast: shapes are aligned at the last axis and size 1 stretches. The gradient of a
// stretched operand is summed over the axes along which it was stretched, in a fixed order
// (framework/kernels/reduce.h). Errors: the shapes do not broadcast; the types differ or are not f32 or f64.
// A number takes the tensor's type.
#pragma once

#include "framework/autograd/tensor.h"

namespace headlab {

Tensor add(const Tensor& a, const Tensor& b);
Tensor add(const Tensor& a, double b);
Tensor add(double a, const Tensor& b);

Tensor sub(const Tensor& a, const Tensor& b);
Tensor sub(const Tensor& a, double b);
Tensor sub(double a, const Tensor& b);

Tensor mul(const Tensor& a, const Tensor& b);
Tensor mul(const Tensor& a, double b);
Tensor mul(double a, const Tensor& b);

/// By IEEE 754: x / 0 is an infinity, 0 / 0 is NaN.
Tensor div(const Tensor& a, const Tensor& b);
Tensor div(const Tensor& a, double b);
Tensor div(double a, const Tensor& b);

/// -x
Tensor neg(const Tensor& x);

}  // namespace headlab
