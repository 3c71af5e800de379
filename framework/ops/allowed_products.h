// The two products of attention where what is blocked may hold NaN or infinity: queries and keys that do not
// see each other take no part in each other's sums, in value and gradient. With finite numbers both are
// matmul, to the bit in value; these here take longer.
#pragma once

#include "framework/autograd/tensor.h"
#include "framework/ops/mask.h"

namespace headlab {

/// q [B, heads, n_q, d] · k [B, kv_heads, n_k, d]ᵀ → [B, heads, n_q, n_k], 0 where the mask blocks.
/// Consecutive query heads share a key head.
Tensor allowed_scores(const Tensor& q, const Tensor& k, const ResolvedMask& mask);

/// weights [B, heads, n_q, n_k] · v [B, kv_heads, n_k, d] → [B, heads, n_q, d], without the values whose
/// weight is 0.
Tensor weighted_values(const Tensor& weights, const Tensor& v);

}  // namespace headlab
