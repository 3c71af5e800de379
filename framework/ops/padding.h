// Padding that holds NaN or infinity.
#pragma once

#include "framework/autograd/tensor.h"
#include "framework/ops/mask.h"

namespace headlab {

/// x [B, n_k, d], the input of keys and values, with rows that the mask's key_lengths or valid_keys call
/// padding read as 0 where they hold a number that is not finite; their gradient is 0 then. Blocked keys do
/// not matter to attention, but through a projection such a row would reach the gradient of its weights.
/// Returns x itself where there is nothing to do. Errors: lengths or valid_keys that do not fit x.
Tensor without_broken_padding(const Tensor& x, const Mask& mask);

}  // namespace headlab
