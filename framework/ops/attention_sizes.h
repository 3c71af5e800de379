// What the streaming kernel's operation and its composite ask of their arguments.
#pragma once

#include <cstdint>

#include "framework/ops/attention.h"

namespace headlab::detail {

struct AttentionSizes {
  std::int64_t batch, heads, kv_heads, n_q, n_k, d_k, d_v;
  double scale;  ///< of q·k
};

/// Errors: sizes, types or options that do not fit, with all of them named. Masks are checked where they are
/// resolved.
AttentionSizes check_attention(const Tensor& q, const Tensor& k, const Tensor& v,
                               const AttentionOptions& options);
/// The same for one packed projection.
AttentionSizes check_attention(const Tensor& qkv, const AttentionOptions& options);

}  // namespace headlab::detail
