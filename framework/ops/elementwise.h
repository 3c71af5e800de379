// Functions of one number, applied to every element of an f32 or f64 tensor. Formulas and what they do at the
// ends of their range: framework/kernels/elementwise.h. NaN stays NaN. Error: another type.
#pragma once

#include "framework/autograd/tensor.h"

namespace headlab {

/// Keep their output for backward: changing it in place before backward is an error.
Tensor exp(const Tensor& x);
Tensor sqrt(const Tensor& x);
Tensor relu(const Tensor& x);
Tensor sigmoid(const Tensor& x);
Tensor tanh(const Tensor& x);

/// Keep their argument. log of 0 is -infinity, of a negative number NaN.
Tensor log(const Tensor& x);
/// x σ(x), also called swish.
Tensor silu(const Tensor& x);
/// log(1 + e^x)
Tensor softplus(const Tensor& x);
/// The tanh form (GPT-2); gelu_exact is the one with the error function (BERT, ViT).
Tensor gelu(const Tensor& x);
Tensor gelu_exact(const Tensor& x);

}  // namespace headlab
