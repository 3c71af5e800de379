#include "framework/nn/attention.h"

#include "framework/nn/step_context.h"
#include "framework/ops/linear.h"
#include "framework/ops/padding.h"
#include "framework/ops/reduction.h"
#include "framework/ops/shaping.h"

namespace headlab {

namespace {

using Options = MultiHeadAttention::Options;

Options resolved(Options o) {
  check(o.heads >= 1, "attention", "heads {} must be at least 1", o.heads);
  check(o.d_model >= 1, "attention", "d_model {} must be at least 1", o.d_model);
  check(o.d_k >= 0 && o.d_v >= 0 && o.kdim >= 0 && o.vdim >= 0, "attention",
        "d_k {}, d_v {}, kdim {}, vdim {}: none is negative", o.d_k, o.d_v, o.kdim, o.vdim);
  check(o.d_k > 0 || o.d_model % o.heads == 0, "attention",
        "d_model {} is not a multiple of heads {}; give d_k to have it free", o.d_model, o.heads);
  check(o.kv_heads >= 0 && (o.kv_heads == 0 || o.heads % o.kv_heads == 0), "attention",
        "kv_heads {} does not divide heads {}", o.kv_heads, o.heads);
  check(o.dropout >= 0 && o.dropout <= 1, "attention", "dropout {} is not in [0, 1]", o.dropout);
  if (o.kv_heads == 0) o.kv_heads = o.heads;
  if (o.d_k == 0) o.d_k = o.d_model / o.heads;
  if (o.d_v == 0) o.d_v = o.d_k;
  if (o.kdim == 0) o.kdim = o.d_model;
  if (o.vdim == 0) o.vdim = o.d_model;
  check(!o.rotary || o.d_k % 2 == 0, "attention",
        "rotary positions need an even d_k, not {} (d_model {}, heads {})", o.d_k, o.d_model, o.heads);
  return o;
}

}  // namespace

MultiHeadAttention::MultiHeadAttention(const Options& given) : options_(resolved(given)) {
  const Options& o = options_;
  const std::int64_t q_rows = o.heads * o.d_k;
  const std::int64_t k_rows = o.kv_heads * o.d_k;
  const std::int64_t v_rows = o.kv_heads * o.d_v;
  if (o.kdim == o.d_model && o.vdim == o.d_model) {
    qkv_weight.emplace(
        this, "qkv.weight", Shape{q_rows + k_rows + v_rows, o.d_model}, o.weights, Role::matrix,
        std::vector<Parameter::Block>{{"q.weight", q_rows}, {"k.weight", k_rows}, {"v.weight", v_rows}});
  } else {
    q_weight.emplace(this, "q.weight", Shape{q_rows, o.d_model}, o.weights, Role::matrix);
    k_weight.emplace(this, "k.weight", Shape{k_rows, o.kdim}, o.weights, Role::matrix);
    v_weight.emplace(this, "v.weight", Shape{v_rows, o.vdim}, o.weights, Role::matrix);
  }
  if (o.bias) qkv_bias.emplace(this, "qkv.bias", Shape{q_rows + k_rows + v_rows}, Init::zeros(), Role::bias);
  if (o.out_proj) {
    out.emplace(this, "out",
                Linear::Options{.in = o.heads * o.d_v,
                                .out = o.d_model,
                                .bias = o.bias,
                                .weights = o.out_weights.value_or(o.weights)});
  }
}

MultiHeadAttention::Projection MultiHeadAttention::rows(const std::optional<Parameter>& own,
                                                        std::int64_t from, std::int64_t to) {
  Projection projection;
  projection.weight = own ? own->tensor() : slice(*qkv_weight, 0, from, to);
  if (qkv_bias) projection.bias = slice(*qkv_bias, 0, from, to);
  return projection;
}
MultiHeadAttention::Projection MultiHeadAttention::q_proj() {
  return rows(q_weight, 0, options_.heads * options_.d_k);
}
MultiHeadAttention::Projection MultiHeadAttention::k_proj() {
  const std::int64_t from = options_.heads * options_.d_k;
  return rows(k_weight, from, from + options_.kv_heads * options_.d_k);
}
MultiHeadAttention::Projection MultiHeadAttention::v_proj() {
  const std::int64_t from = (options_.heads + options_.kv_heads) * options_.d_k;
  return rows(v_weight, from, from + options_.kv_heads * options_.d_v);
}

Tensor MultiHeadAttention::turned(const Tensor& x, std::int64_t heads) const {
  if (!options_.rotary) return x;
  return rotary(x, {.heads = heads,
                    .head_size = options_.d_k,
                    .base = options_.rotary->base,
                    .pairing = options_.rotary->pairing});
}

AttentionOptions MultiHeadAttention::attention_options(const Call& call, std::int64_t n_q, std::int64_t n_k) {
  AttentionOptions o{.heads = options_.heads,
                     .kv_heads = options_.kv_heads,
                     .scale = options_.scale,
                     .mask = call.mask,
                     .weights = call.weights || keeps_pattern()};
  if (training() && options_.dropout > 0) {
    o.dropout = options_.dropout;
    o.dropout_key = dropout_key(path(), options_.heads * n_q * n_k, calls_);
  }
  return o;
}

MultiHeadAttention::Result MultiHeadAttention::finish(AttentionResult result, const Call& call) {
  if (keeps_pattern()) set_pattern(result.weights.value());
  Tensor z = gate() ? head_gate(result.out, gate(), options_.heads) : result.out;
  if (out) z = (*out)(z);
  if (!call.weights) return {z, Tensor()};
  return {z, call.average_weights ? mean(result.weights, {1}) : result.weights};
}

MultiHeadAttention::Result MultiHeadAttention::operator()(const Tensor& given, const Call& call) {
  const Options& o = options_;
  const Tensor x = without_broken_padding(given, call.mask);
  check(x.rank() == 3 && x.dim(2) == o.d_model, "attention", "needs x [batch, tokens, {}], not {}", o.d_model,
        x.shape());
  if (!qkv_weight || o.d_k != o.d_v) return (*this)(x, x, x, call);
  const Tensor qkv = linear(x, *qkv_weight, qkv_bias ? qkv_bias->tensor() : Tensor());
  // Queries and keys lie first in a row, so one call turns both.
  const Tensor positioned = turned(qkv, o.heads + o.kv_heads);
  return finish(attention(positioned, attention_options(call, x.dim(1), x.dim(1))), call);
}

MultiHeadAttention::Result MultiHeadAttention::operator()(const Tensor& query, const Tensor& key,
                                                          const Tensor& value, const Call& call) {
  const Options& o = options_;
  check(query.rank() == 3 && query.dim(2) == o.d_model && key.rank() == 3 && key.dim(2) == o.kdim &&
            value.rank() == 3 && value.dim(2) == o.vdim,
        "attention",
        "needs query [batch, n_q, {}], key [batch, n_k, {}], value [batch, n_k, {}], not {}, {}, {}",
        o.d_model, o.kdim, o.vdim, query.shape(), key.shape(), value.shape());
  const Projection to_q = q_proj();
  const Projection to_k = k_proj();
  const Projection to_v = v_proj();
  const Tensor q = turned(linear(query, to_q.weight, to_q.bias), o.heads);
  const Tensor k = turned(linear(without_broken_padding(key, call.mask), to_k.weight, to_k.bias), o.kv_heads);
  const Tensor v = linear(without_broken_padding(value, call.mask), to_v.weight, to_v.bias);
  return finish(attention(q, k, v, attention_options(call, query.dim(1), key.dim(1))), call);
}

}  // namespace headlab
