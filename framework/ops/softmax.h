// Softmax and log-softmax along any axis.
#pragma once

#include "framework/autograd/tensor.h"

namespace headlab {

/// exp(x) / Σ exp(x) along `axis` (-1 is the last), computed from x - max x: right for any finite x, f32 or
/// f64. As in PyTorch a NaN makes its whole row NaN, and so does a +infinity; -infinity gets weight 0, and a
/// row of nothing but -infinity is NaN (masked attention, where such rows are zeros, is another op). Error:
/// the axis is out of range.
Tensor softmax(const Tensor& x, int axis = -1);

/// log(softmax(x, axis)) in one step, without the loss of taking a logarithm of small weights.
Tensor log_softmax(const Tensor& x, int axis = -1);

}  // namespace headlab
