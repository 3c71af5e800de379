#include "framework/autograd/node.h"
#include "framework/core/parallel.h"
#include "framework/kernels/finite.h"
#include "framework/kernels/masked_softmax.h"
#include "framework/ops/allowed_products.h"
#include "framework/ops/arithmetic.h"
#include "framework/ops/attention.h"
#include "framework/ops/attention_sizes.h"
#include "framework/ops/dropout.h"
#include "framework/ops/elementwise.h"
#include "framework/ops/embedding.h"
#include "framework/ops/matmul.h"
#include "framework/ops/shaping.h"

namespace headlab {

namespace {

Tensor softmax_of_allowed(const Tensor& scores, const ResolvedMask& resolved) {
  const Shape shape = scores.shape();
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

/// Additive bias [1, heads, n_q, n_k] from one by distance, [heads, n_q + n_k − 1].
Tensor by_query_and_key(const Tensor& offset_bias, std::int64_t heads, std::int64_t n_q, std::int64_t n_k) {
  Array ids({n_q, n_k}, DType::i64);
  for (std::int64_t i = 0; i < n_q; ++i) {
    for (std::int64_t j = 0; j < n_k; ++j) ids.data<std::int64_t>()[i * n_k + j] = j - i + n_q - 1;
  }
  const Tensor by_offset = transpose(offset_bias, {1, 0});
  const Tensor rows = embedding(ids, by_offset);  // [n_q, n_k, heads]
  return reshape(transpose(rows, {2, 0, 1}), {1, heads, n_q, n_k});
}

bool is_finite(const Array& x) {
  return dispatch(x.dtype(), "attention", [&](auto zero) {
    return kernels::all_finite(x.data<decltype(zero)>(), 1, x.size(), x.size());
  });
}

/// k [B, kv, n, d] with each key/value head as often as query heads share it.
Tensor for_each_head(const Tensor& k, std::int64_t group) {
  if (group == 1) return k;
  std::vector<Tensor> parts;
  for (std::int64_t i = 0; i < k.dim(1); ++i) {
    const Tensor one = slice(k, 1, i, i + 1);
    for (std::int64_t copy = 0; copy < group; ++copy) parts.push_back(one);
  }
  return concat(parts, 1);
}

}  // namespace

Tensor masked_softmax(const Tensor& given, const Mask& mask, const Tensor& sink) {
  const Shape given_shape = given.shape();
  check(given_shape.rank() == 4, "masked_softmax", "needs scores [batch, heads, n_q, n_k], not {}",
        given_shape);
  check(!mask.bias(), "masked_softmax", "a bias belongs into the scores before");
  const ResolvedMask resolved(mask, given_shape[0], given_shape[1], given_shape[2], given_shape[3],
                              "masked_softmax");
  if (!sink) return softmax_of_allowed(given, resolved);
  // One more key, first in every row, that is allowed wherever another one is.
  check(sink.rank() == 1 && sink.dim(0) == given_shape[1], "masked_softmax", "needs a sink [{}], not {}",
        given_shape[1], sink.shape());
  const Tensor one = Tensor::full({given_shape[0], 1, given_shape[2], 1}, 1, given.dtype());
  const Tensor column = mul(one, reshape(sink, {1, given_shape[1], 1, 1}));
  const Tensor scores = concat({column, given}, 3);
  Array allow(scores.shape(), DType::u8);
  std::uint8_t* to = allow.data<std::uint8_t>();
  for (std::int64_t b = 0; b < given_shape[0]; ++b) {
    for (std::int64_t h = 0; h < given_shape[1]; ++h) {
      for (std::int64_t i = 0; i < given_shape[2]; ++i, to += given_shape[3] + 1) {
        to[0] = resolved.allowed_keys(b, h, i) > 0 ? 1 : 0;
        const ResolvedMask::Row row = resolved.row(b, h, i);
        for (std::int64_t j = 0; j < given_shape[3]; ++j) to[j + 1] = row.allows(j) ? 1 : 0;
      }
    }
  }
  const Shape shape = scores.shape();
  const Mask with_sink = Mask::allow(allow);
  const Tensor weights = softmax_of_allowed(
      scores, ResolvedMask(with_sink, shape[0], shape[1], shape[2], shape[3], "masked_softmax"));
  return slice(weights, 3, 1, shape[3]);
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

AttentionResult attention(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionOptions& o,
                          const AttentionInside& inside) {
  const detail::AttentionSizes sizes = detail::check_attention(q, k, v, o);
  const std::int64_t batch = sizes.batch, h = sizes.heads, kv = sizes.kv_heads, group = h / kv;
  const std::int64_t n_q = sizes.n_q, n_k = sizes.n_k, d_k = sizes.d_k, d_v = sizes.d_v;
  const ResolvedMask resolved(o.mask, batch, h, n_q, n_k, "attention");
  const Tensor q4 = transpose(reshape(q, {batch, n_q, h, d_k}), {0, 2, 1, 3});
  const Tensor k4 = transpose(reshape(k, {batch, n_k, kv, d_k}), {0, 2, 1, 3});
  const Tensor v4 = transpose(reshape(v, {batch, n_k, kv, d_v}), {0, 2, 1, 3});
  // 0 · NaN is NaN: where the inputs are not finite, blocked pairs have to be left out of every sum.
  const bool finite = is_finite(q.value()) && is_finite(k.value()) && is_finite(v.value());

  Tensor scores;
  if (inside.score) {
    const Tensor kh = for_each_head(k4, group);
    scores = inside.score(q4, kh);
    check(scores.shape() == Shape({batch, h, n_q, n_k}), "attention",
          "a score function gave {}, needs [{}, {}, {}, {}]", scores.shape(), batch, h, n_q, n_k);
  } else if (finite) {
    const Tensor qh = reshape(q4, {batch, kv, group, n_q, d_k});
    const Tensor kt = reshape(swap_axes(k4, 2, 3), {batch, kv, 1, d_k, n_k});
    scores = reshape(matmul(qh, kt), {batch, h, n_q, n_k});
    scores = mul(scores, sizes.scale);
  } else {
    scores = allowed_scores(q4, k4, resolved);
    scores = mul(scores, sizes.scale);
  }
  if (o.softcap > 0) {
    const Tensor small = tanh(mul(scores, 1 / o.softcap));
    scores = mul(small, o.softcap);
  }
  if (o.mask.bias()) scores = add(scores, o.mask.bias());
  if (o.offset_bias) scores = add(scores, by_query_and_key(o.offset_bias, h, n_q, n_k));
  if (inside.scores) scores = inside.scores(scores);
  Tensor weights = masked_softmax(scores, o.mask.without_bias(), o.sink);
  if (inside.pattern) weights = inside.pattern(weights);
  const Tensor kept = o.dropout > 0 ? dropout(weights, o.dropout, o.dropout_key) : weights;
  Tensor z;
  if (finite) {
    const Tensor wh = reshape(kept, {batch, kv, group, n_q, n_k});
    z = matmul(wh, reshape(v4, {batch, kv, 1, n_k, d_v}));
  } else {
    z = weighted_values(kept, v4);
  }
  const Tensor rows = transpose(reshape(z, {batch, h, n_q, d_v}), {0, 2, 1, 3});
  AttentionResult result{.out = reshape(rows, {batch, n_q, h * d_v}), .weights = weights};
  if (o.telemetry) result.telemetry = telemetry_of(weights.value(), o.mask, *o.telemetry);
  return result;
}

}  // namespace composite
}  // namespace headlab
