// Scaled dot-product attention (Vaswani et al. 2017, eq. 1) over heads that lie side by side in the last
// axis, so that splitting and joining heads moves no memory.
#pragma once

#include <cstdint>
#include <optional>

#include "framework/autograd/tensor.h"
#include "framework/ops/dropout.h"
#include "framework/ops/mask.h"

namespace headlab {

struct AttentionOptions {
  std::int64_t heads = 1;
  std::int64_t kv_heads =
      0;  ///< 0: heads. Else divides heads: consecutive query heads share a key/value head
  std::optional<double> scale = {};  ///< of q·k; 1/√d_k unless given
  Mask mask = {};
  bool weights = false;  ///< also return the weights
  double dropout = 0;    ///< probability of dropping a weight
  DropoutKey dropout_key = {};
};

struct AttentionResult {
  Tensor out;      ///< [B, n_q, heads·d_v]
  Tensor weights;  ///< [B, heads, n_q, n_k], before dropout, when asked for
};

/// q [B, n_q, heads·d_k], k [B, n_k, kv_heads·d_k], v [B, n_k, kv_heads·d_v]. The order of a score is
/// scale·q·k, + bias, mask. A query with no allowed key gets zero weights, zero output and adds zero to every
/// gradient; blocked keys and values are skipped, whatever they hold. Parallel over batch × heads. Errors:
/// sizes that do not fit, with all of them named.
AttentionResult attention(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionOptions& options);

/// Self attention of one projection: qkv [B, T, (heads + 2·kv_heads)·d], queries first, then keys, then
/// values.
AttentionResult attention(const Tensor& qkv, const AttentionOptions& options);

/// Multiplies the context of each head by its gate: z [B, n, heads·d_v], gate [heads] or [B, heads].
Tensor head_gate(const Tensor& z, const Tensor& gate, std::int64_t heads);

/// Weights of scores [B, heads, n_q, n_k] that already hold scale and bias.
Tensor masked_softmax(const Tensor& scores, const Mask& mask);

namespace composite {
/// The definition, from single operations: what attention() is tested against, and what runs when scores are
/// looked at.
AttentionResult attention(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionOptions& options);
}  // namespace composite

}  // namespace headlab
