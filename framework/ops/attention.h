// Scaled dot-product attention (Vaswani et al. 2017, eq. 1) over heads that lie side by side in the last
// axis, so that splitting and joining heads moves no memory.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "framework/autograd/tensor.h"
#include "framework/ops/dropout.h"
#include "framework/ops/mask.h"
#include "framework/ops/telemetry.h"

namespace headlab {

struct AttentionOptions {
  std::int64_t heads = 1;
  std::int64_t kv_heads =
      0;  ///< 0: heads. Else divides heads: consecutive query heads share a key/value head
  std::optional<double> scale = {};  ///< of q·k; 1/√d_k unless given
  double softcap = 0;                ///< scores become softcap·tanh(score/softcap) (Gemma 2); 0: off
  Mask mask = {};
  /// [heads, n_q + n_k − 1], differentiable: entry δ + n_k − 1 is added to scores of distance δ (see Mask).
  Tensor offset_bias = {};
  /// [heads], differentiable: the score of a key without a value that every query with an allowed key also
  /// sees (Xiao et al. 2023; gpt-oss). Weights of keys then sum to less than 1.
  Tensor sink = {};
  double dropout = 0;  ///< probability of dropping a weight
  DropoutKey dropout_key = {};
  std::optional<TelemetryOptions> telemetry = {};
};

struct AttentionResult {
  Tensor out;                               ///< [B, n_q, heads·d_v]
  Tensor weights = {};                      ///< composite only: [B, heads, n_q, n_k], before dropout
  std::optional<Telemetry> telemetry = {};  ///< when asked for; not differentiable
};

/// q [B, n_q, heads·d_k], k [B, n_k, kv_heads·d_k], v [B, n_k, kv_heads·d_v]. The order of a score is
/// scale·q·k, softcap, + biases, mask, sink. A query with no allowed key gets zero weights, zero output and
/// adds zero to every gradient; blocked keys and values are skipped, whatever they hold.
///
/// Streams over tiles of keys with a running maximum and sum (Dao et al. 2022): memory grows with T, not T².
/// The bits of an output row do not depend on the other queries. Parallel over batch × heads × blocks of
/// queries. Errors: sizes that do not fit, with all of them named.
AttentionResult attention(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionOptions& options);

/// Self attention of one projection: qkv [B, T, (heads + 2·kv_heads)·d], queries first, then keys, then
/// values. The same bits as three tensors.
AttentionResult attention(const Tensor& qkv, const AttentionOptions& options);

/// Multiplies the context of each head by its gate: z [B, n, heads·d_v], gate [heads] or [B, heads].
Tensor head_gate(const Tensor& z, const Tensor& gate, std::int64_t heads);

/// Weights of scores [B, heads, n_q, n_k] that already hold scale and biases; sink [heads] or undefined.
Tensor masked_softmax(const Tensor& scores, const Mask& mask, const Tensor& sink = {});

namespace composite {

/// What may be looked at or replaced inside; each may be empty.
struct AttentionInside {
  /// Scores of q [B, heads, n_q, d_k] and k [B, heads, n_k, d_k] in place of scale·q·kᵀ.
  std::function<Tensor(const Tensor& q, const Tensor& k)> score;
  /// Scores [B, heads, n_q, n_k] after biases, before the mask: what they say of blocked keys does not
  /// matter.
  std::function<Tensor(const Tensor&)> scores;
  /// Weights [B, heads, n_q, n_k] before dropout.
  std::function<Tensor(const Tensor&)> pattern;
};

/// The definition, from single operations: what attention() is tested against, and what runs when something
/// inside is looked at. Memory B·heads·n_q·n_k.
AttentionResult attention(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionOptions& options,
                          const AttentionInside& inside = {});

}  // namespace composite
}  // namespace headlab
