#include <cmath>

#include "framework/autograd/node.h"
#include "framework/core/parallel.h"
#include "framework/kernels/masked_softmax.h"
#include "framework/ops/arithmetic.h"
#include "framework/ops/attention.h"
#include "framework/ops/dropout.h"
#include "framework/ops/matmul.h"
#include "framework/ops/shaping.h"

namespace headlab {

Tensor masked_softmax(const Tensor& scores, const Mask& mask) {
  const Shape shape = scores.shape();
  check(shape.rank() == 4, "masked_softmax", "needs scores [batch, heads, n_q, n_k], not {}", shape);
  check(!mask.bias(), "masked_softmax", "a bias belongs into the scores before");
  const ResolvedMask resolved(mask, shape[0], shape[1], shape[2], shape[3], "masked_softmax");
  const std::int64_t n_q = shape[2];
  const std::int64_t n_k = shape[3];
  const Cost cost{.flops = 30 * static_cast<double>(n_k), .bytes = 16 * static_cast<double>(n_k)};
  Array p = scores.value().copy();
  dispatch(p.dtype(), "masked_softmax", [&](auto zero) {
    using T = decltype(zero);
    parallel_for(shape.product(0, 3), grain_for(cost), cost, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t r = begin; r < end; ++r) {
        const ResolvedMask::Row row = resolved.row(r / (n_q * shape[1]), r / n_q % shape[1], r % n_q);
        kernels::masked_softmax(
            p.data<T>() + r * n_k, n_k,
            kernels::ScoreRow<T>{row.first, row.last, row.allow, row.valid, nullptr, T{1}});
      }
    });
  });
  const auto closure = [p, cost, n_k](const Array& dy, Sinks dx) {
    Array ds = dy.copy();
    dispatch(p.dtype(), "masked_softmax", [&](auto zero) {
      using T = decltype(zero);
      parallel_for(n_k == 0 ? 0 : ds.size() / n_k, grain_for(cost), cost,
                   [&](std::int64_t begin, std::int64_t end) {
                     for (std::int64_t r = begin; r < end; ++r) {
                       kernels::masked_softmax_backward(p.data<T>() + r * n_k, ds.data<T>() + r * n_k, n_k);
                     }
                   });
    });
    dx[0].add(std::move(ds));
  };
  return record("masked_softmax", p, {scores}, closure, Keeps::output);
}

Tensor head_gate(const Tensor& z, const Tensor& gate, std::int64_t heads) {
  const Shape shape = z.shape();
  check(shape.rank() == 3 && heads >= 1 && shape[2] % heads == 0, "head_gate",
        "needs z [batch, tokens, {}·d], not {}", heads, shape);
  const Shape g = gate.shape();
  const bool per_example = g.rank() == 2 && g[0] == shape[0] && g[1] == heads;
  check(per_example || (g.rank() == 1 && g[0] == heads), "head_gate", "needs a gate [{}] or [{}, {}], not {}",
        heads, shape[0], heads, g);
  const Tensor by_head = reshape(z, {shape[0], shape[1], heads, shape[2] / heads});
  const Tensor factor = reshape(gate, {per_example ? shape[0] : 1, 1, heads, 1});
  const Tensor gated = mul(by_head, factor);
  return reshape(gated, shape);
}

namespace composite {

AttentionResult attention(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionOptions& o) {
  const std::int64_t h = o.heads;
  const std::int64_t kv = o.kv_heads == 0 ? h : o.kv_heads;
  const std::int64_t group = h / kv;
  const std::int64_t batch = q.dim(0);
  const std::int64_t n_q = q.dim(1);
  const std::int64_t n_k = k.dim(1);
  const std::int64_t d_k = q.dim(2) / h;
  const std::int64_t d_v = v.dim(2) / kv;
  const double scale = o.scale.value_or(1 / std::sqrt(static_cast<double>(d_k)));
  const Tensor q4 = reshape(q, {batch, n_q, h, d_k});
  const Tensor qh = reshape(transpose(q4, {0, 2, 1, 3}), {batch, kv, group, n_q, d_k});
  const Tensor k4 = reshape(k, {batch, n_k, kv, d_k});
  const Tensor kt = reshape(transpose(k4, {0, 2, 3, 1}), {batch, kv, 1, d_k, n_k});
  const Tensor v4 = reshape(v, {batch, n_k, kv, d_v});
  const Tensor vh = reshape(transpose(v4, {0, 2, 1, 3}), {batch, kv, 1, n_k, d_v});

  Tensor scores = reshape(matmul(qh, kt), {batch, h, n_q, n_k});
  scores = mul(scores, scale);
  if (o.mask.bias()) scores = add(scores, o.mask.bias());
  const Tensor weights = masked_softmax(scores, o.mask.without_bias());
  const Tensor kept = o.dropout > 0 ? dropout(weights, o.dropout, o.dropout_key) : weights;
  const Tensor z = matmul(reshape(kept, {batch, kv, group, n_q, n_k}), vh);
  const Tensor rows = transpose(reshape(z, {batch, h, n_q, d_v}), {0, 2, 1, 3});
  return {reshape(rows, {batch, n_q, h * d_v}), o.weights ? weights : Tensor()};
}

}  // namespace composite
}  // namespace headlab
