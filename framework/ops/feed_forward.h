// The position-wise network of a transformer block: two linear maps with an activation between them.
#pragma once

#include "framework/autograd/tensor.h"

namespace headlab {

/// up [hidden, in], down [out, hidden]; biases [hidden] and [out], each may be undefined.
struct FeedForwardWeights {
  Tensor up, up_bias;
  Tensor down, down_bias;
};

/// linear(gelu(linear(x, up, up_bias)), down, down_bias) of x [..., in], and the same bits. The activation
/// and its slope are worked out together, once, on blocks of the first product that are still in the cache;
/// backward only multiplies by the slope, in blocks as well. Keeps x, the hidden numbers and their slopes.
/// Errors: as of linear().
Tensor feed_forward_gelu(const Tensor& x, const FeedForwardWeights& weights);
/// With gelu_exact.
Tensor feed_forward_gelu_exact(const Tensor& x, const FeedForwardWeights& weights);

namespace composite {
/// What they are by definition.
Tensor feed_forward_gelu(const Tensor& x, const FeedForwardWeights& weights);
Tensor feed_forward_gelu_exact(const Tensor& x, const FeedForwardWeights& weights);
}  // namespace composite

}  // namespace headlab
