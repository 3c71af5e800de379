#include "framework/nn/attention.h"

#include <algorithm>
#include <cmath>

#include "framework/nn/step_context.h"
#include "framework/ops/arithmetic.h"
#include "framework/ops/elementwise.h"
#include "framework/ops/embedding.h"
#include "framework/ops/linear.h"
#include "framework/ops/matmul.h"
#include "framework/ops/padding.h"
#include "framework/ops/reduction.h"
#include "framework/ops/shaping.h"

namespace headlab {

namespace {

using Options = MultiHeadAttention::Options;

Options resolved(Options o) {
  check(o.heads >= 1 || (o.heads == 0 && o.d_k > 0 && o.kv_heads == 0), "attention",
        "heads {} must be at least 1", o.heads);
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
  if (o.rotary && o.rotary->width == 0) o.rotary->width = o.d_k;
  check(!o.rotary || o.rotary->width % 2 == 0, "attention",
        "rotary positions need an even d_k or width, not {} (d_model {}, heads {})",
        o.rotary ? o.rotary->width : 0, o.d_model, o.heads);
  check(!o.rotary || (o.rotary->width > 0 && o.rotary->width <= o.d_k), "attention",
        "rotary width {} is not in 2 … d_k = {}", o.rotary ? o.rotary->width : 0, o.d_k);
  check(o.softcap >= 0 && std::isfinite(o.softcap), "attention", "softcap {} is not a number from 0 on",
        o.softcap);
  check(!o.rotary || (o.rotary->base > 0 && std::isfinite(o.rotary->base)), "attention",
        "rotary base {} is not positive", o.rotary ? o.rotary->base : 0);
  check(!o.scale || std::isfinite(*o.scale), "attention", "scale {} is not finite", o.scale.value_or(0));
  check(o.window >= 0, "attention", "window {} is negative", o.window);
  check(!o.relative_keys || o.relative_keys->reach >= 1, "attention", "relative keys of reach {}, at least 1",
        o.relative_keys ? o.relative_keys->reach : 0);
  check(!o.relative_keys || !o.score, "attention", "relative keys and a score function exclude each other");
  return o;
}

/// Rows [from, from + rows) of a matrix, turned into columns, f64.
Array transposed_rows(const Array& matrix, std::int64_t from, std::int64_t rows) {
  const std::int64_t columns = matrix.dim(1);
  Array result({columns, rows}, DType::f64);
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t c = 0; c < columns; ++c)
      result.data<double>()[c * rows + r] = matrix.at((from + r) * columns + c);
  }
  return result;
}

}  // namespace

MultiHeadAttention::MultiHeadAttention(const Options& given) : HeadLayer(this), options_(resolved(given)) {
  const Options& o = options_;
  if (o.heads == 0) {
    if (o.bias && o.out_proj) out_bias.emplace(this, "out.bias", Shape{o.d_model}, Init::zeros(), Role::bias);
    return;
  }
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
  if (o.sink) sink.emplace(this, "sink", Shape{o.heads}, Init::zeros(), Role::bias);
  if (o.relative_bias) {
    relative_bucket(0, *o.relative_bias);  // refuses impossible buckets
    // As T5: N(0, 1/d_model), which unlike a rule of fans does not depend on the number of heads.
    relative_bias.emplace(this, "relative_bias", Shape{o.relative_bias->buckets, o.heads},
                          Init::normal(1 / std::sqrt(static_cast<double>(o.d_model))), Role::position);
  }
  if (o.relative_keys) {
    const RelativeKeys& r = *o.relative_keys;
    relative_keys.emplace(this, "relative_keys",
                          Shape{r.bidirectional ? 2 * r.reach - 1 : r.reach, o.heads * o.d_k},
                          Init::normal(r.std), Role::position);
  }
  if (o.smeared_keys) smear.emplace(this, "smear", Shape{o.kv_heads}, Init::zeros(), Role::bias);
  if (o.qk_norm == QkNorm::layer) {
    q_layer_norm.emplace(this, "q_norm", LayerNorm::Options{.d_model = o.d_k});
    k_layer_norm.emplace(this, "k_norm", LayerNorm::Options{.d_model = o.d_k});
  }
  if (o.qk_norm == QkNorm::rms) {
    q_rms_norm.emplace(this, "q_norm", RMSNorm::Options{.d_model = o.d_k});
    k_rms_norm.emplace(this, "k_norm", RMSNorm::Options{.d_model = o.d_k});
  }
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

std::optional<HeadWeights> MultiHeadAttention::head_weights(std::int64_t head) {
  const Options& o = options_;
  check(head >= 0 && head < o.heads, "attention", "has no head {}: there are {}", head, o.heads);
  if (!out || o.score) return std::nullopt;
  const NoGrad no_grad;
  const std::int64_t shared = head / (o.heads / o.kv_heads);
  HeadWeights w;
  w.q = transposed_rows(q_proj().weight.value(), head * o.d_k, o.d_k);
  w.k = transposed_rows(k_proj().weight.value(), shared * o.d_k, o.d_k);
  w.v = transposed_rows(v_proj().weight.value(), shared * o.d_v, o.d_v);
  const Array& to_out = (*out)->weight.tensor().value();  // [d_model, heads·d_v]
  w.o = Array({o.d_v, o.d_model}, DType::f64);
  for (std::int64_t c = 0; c < o.d_v; ++c) {
    for (std::int64_t d = 0; d < o.d_model; ++d)
      w.o.data<double>()[c * o.d_model + d] = to_out.at(d * o.heads * o.d_v + head * o.d_v + c);
  }
  return w;
}

Tensor MultiHeadAttention::normed(const Tensor& x, std::int64_t heads, bool queries) {
  if (options_.qk_norm == QkNorm::none) return x;
  const Shape shape = x.shape();
  const Tensor by_head = reshape(x, {shape[0], shape[1], heads, options_.d_k});
  if (options_.qk_norm == QkNorm::rms) {
    return reshape((queries ? *q_rms_norm : *k_rms_norm)(by_head), shape);
  }
  return reshape((queries ? *q_layer_norm : *k_layer_norm)(by_head), shape);
}

Tensor MultiHeadAttention::turned(const Tensor& x, std::int64_t heads, std::int64_t first_position) const {
  if (!options_.rotary) return x;
  return rotary(x, {.heads = heads,
                    .head_size = options_.d_k,
                    .width = options_.rotary->width,
                    .base = options_.rotary->base,
                    .pairing = options_.rotary->pairing,
                    .first_position = first_position});
}

Tensor MultiHeadAttention::smeared(const Tensor& k) const {
  if (!smear) return k;
  const Shape shape = k.shape();
  if (shape[1] == 0) return k;
  const Tensor by_head = reshape(k, {shape[0], shape[1], options_.kv_heads, options_.d_k});
  const Tensor own = reshape(sigmoid(*smear), {options_.kv_heads, 1});
  const Tensor none = Tensor::full({shape[0], 1, options_.kv_heads, options_.d_k}, 0, k.dtype());
  const Tensor all_but_last = slice(by_head, 1, 0, shape[1] - 1);
  const Tensor before = concat({none, all_but_last}, 1);
  const Tensor difference = sub(by_head, before);
  const Tensor change = mul(difference, own);
  return reshape(add(before, change), shape);
}

// q·R[δ] as one product a head and query: [B, d] · [d, n_k].
Tensor MultiHeadAttention::score_with_relative_keys(const Tensor& q, const Tensor& k) const {
  const RelativeKeys& r = *options_.relative_keys;
  const std::int64_t heads = options_.heads, d = options_.d_k, n_q = q.dim(2), n_k = k.dim(2);
  const std::int64_t rows = relative_keys->tensor().dim(0);
  Array ids({n_q, n_k}, DType::i64);
  for (std::int64_t i = 0; i < n_q; ++i) {
    for (std::int64_t j = 0; j < n_k; ++j) {
      const std::int64_t distance = j - (i + n_k - n_q);
      ids.data<std::int64_t>()[i * n_k + j] = std::clamp<std::int64_t>(distance + r.reach - 1, 0, rows - 1);
    }
  }
  const Tensor vectors = embedding(ids, *relative_keys);  // [n_q, n_k, heads·d]
  const Tensor by_head = transpose(reshape(vectors, {n_q, n_k, heads, d}), {2, 0, 3, 1});
  const Tensor queries = transpose(q, {1, 2, 0, 3});  // [heads, n_q, B, d]
  const Tensor by_place = transpose(matmul(queries, by_head), {2, 0, 1, 3});
  const Tensor by_content = matmul(q, swap_axes(k, 2, 3));
  const Tensor both = add(by_content, by_place);
  return mul(both, options_.scale.value_or(1 / std::sqrt(static_cast<double>(d))));
}

std::string MultiHeadAttention::why_composite(const Call& call) const {
  if (sites.scores.active()) return "a hook reads `scores`";
  if (sites.pattern.active()) return "a hook reads `pattern`";
  if (call.weights) return "the call asks for weights";
  if (options_.score) return "the layer has its own score function";
  if (options_.relative_keys) return "the layer has relative keys";
  return {};
}

std::string MultiHeadAttention::attention_path(const Call& call) const {
  const std::string reason = why_composite(call);
  return reason.empty() ? "streaming" : "composite: " + reason;
}

// One projection of queries, keys and values may stay packed where nothing has to be done to one of them.
bool MultiHeadAttention::packs(const Call& call) const {
  return qkv_weight && options_.d_k == options_.d_v && options_.qk_norm == QkNorm::none && !smear &&
         !call.cache && call.from == 0 && !sites.q.active() && !sites.k.active() && !sites.v.active() &&
         why_composite(call).empty();
}

AttentionOptions MultiHeadAttention::attention_options(const Call& call, std::int64_t n_q, std::int64_t n_k,
                                                       DType dtype) {
  const Options& o = options_;
  AttentionOptions a{.heads = o.heads,
                     .kv_heads = o.kv_heads,
                     .scale = o.scale,
                     .softcap = o.softcap,
                     .mask = o.window > 0 ? call.mask & Mask::window(o.window) : call.mask,
                     .telemetry = telemetry_options()};
  if (sink) a.sink = *sink;
  if (relative_bias) a.offset_bias = headlab::relative_bias(*relative_bias, n_q, n_k, *o.relative_bias);
  if (o.alibi) {
    const Tensor slopes = alibi_bias(o.heads, n_q, n_k, dtype);
    a.offset_bias = a.offset_bias ? add(a.offset_bias, slopes) : slopes;
  }
  if (training() && o.dropout > 0) {
    a.dropout = o.dropout;
    a.dropout_key = dropout_key(path(), o.heads * n_q * n_k, calls_);
  }
  return a;
}

AttentionResult MultiHeadAttention::keep_telemetry(AttentionResult result) {
  if (telemetry_options()) set_telemetry(std::move(result.telemetry));
  return result;
}

// What a layer of no heads says of queries like these.
AttentionResult MultiHeadAttention::nothing(const Tensor& query, const Tensor& key, const Call& call) const {
  AttentionResult result{.out = Tensor::zeros({query.dim(0), query.dim(1), 0}, query.dtype())};
  if (call.cache) {
    const Tensor none = Tensor::zeros({key.dim(0), key.dim(1), 0}, key.dtype());
    call.cache->append(none, none);
  }
  if (telemetry_options()) result.telemetry = Telemetry{};
  if (call.weights)
    result.weights = Tensor::zeros({query.dim(0), 0, query.dim(1), key.dim(1)}, query.dtype());
  return result;
}

Tensor MultiHeadAttention::combine(const Tensor& contexts) {
  if (options_.heads == 0) {
    const Shape shape{contexts.dim(0), contexts.dim(1), options_.out_proj ? options_.d_model : 0};
    const Tensor y = Tensor::zeros(shape, contexts.dtype());
    return sites.out(out_bias ? add(y, *out_bias) : y);
  }
  Tensor z = sites.z(contexts);
  if (gate()) z = head_gate(z, gate(), options_.heads);
  if (out) z = (*out)(z);
  return sites.out(z);
}

MultiHeadAttention::Result MultiHeadAttention::finish(AttentionResult attended, const Call& call) {
  const AttentionResult result = keep_telemetry(std::move(attended));
  const Tensor combined = combine(result.out);
  if (!call.weights) return {combined, Tensor()};
  return {combined, call.average_weights ? mean(result.weights, {1}) : result.weights};
}

AttentionResult MultiHeadAttention::attend_projected(Tensor q, Tensor k, Tensor v, const Call& call) {
  const Options& o = options_;
  const std::int64_t before = call.cache ? call.cache->length() : 0;
  q = sites.q(turned(normed(q, o.heads, true), o.heads, before + call.from));
  check(!call.cache || !smear, "attention", "smeared keys cannot go on from a cache");
  k = sites.k(turned(smeared(normed(k, o.kv_heads, false)), o.kv_heads, before));
  v = sites.v(v);
  if (call.cache) {
    call.cache->append(k, v);
    k = call.cache->keys();
    v = call.cache->values();
  }
  const AttentionOptions options = attention_options(call, q.dim(1), k.dim(1), q.dtype());
  if (why_composite(call).empty()) return attention(q, k, v, options);
  composite::AttentionInside inside;
  inside.score = o.score;
  if (relative_keys) {
    inside.score = [this](const Tensor& x, const Tensor& y) { return score_with_relative_keys(x, y); };
  }
  if (sites.scores.active()) inside.scores = [this](const Tensor& x) { return sites.scores(x); };
  if (sites.pattern.active()) inside.pattern = [this](const Tensor& x) { return sites.pattern(x); };
  return composite::attention(q, k, v, options, inside);
}

MultiHeadAttention::Result MultiHeadAttention::operator()(const Tensor& x, const Call& call) {
  const profile::LayerScope scope(*this);  // blocks call it past Child, with braces
  return finish(attend(x, call), call);
}

AttentionResult MultiHeadAttention::attend(const Tensor& given, const Call& call) {
  const Options& o = options_;
  check(given.rank() == 3 && given.dim(2) == o.d_model, "attention", "needs x [batch, tokens, {}], not {}",
        o.d_model, given.shape());
  check(o.kdim == o.d_model && o.vdim == o.d_model, "attention",
        "keys {} and values {} wide do not come from x, {} wide: give all three", o.kdim, o.vdim, o.d_model);
  check(!call.cache || !training() || o.dropout == 0, "attention",
        "a cache is for use in evaluation mode, not with dropout {}", o.dropout);
  if (o.heads == 0) return nothing(given, given, call);
  // With a cache there are no gradients to guard, and the mask speaks of more tokens than these.
  const Tensor x = call.cache ? given : without_broken_padding(given, call.mask);
  if (call.from != 0) {
    check(!call.cache && call.from > 0 && call.from <= x.dim(1), "attention",
          "queries from position {} on, needs 0 to {} and no cache", call.from, x.dim(1));
    const Tensor query = slice(x, 1, call.from, x.dim(1));
    return project(query, x, x, call);
  }
  if (!packs(call)) return project(x, x, x, call);
  const Tensor qkv = linear(x, *qkv_weight, qkv_bias ? qkv_bias->tensor() : Tensor());
  // Queries and keys lie first in a row, so one call turns both.
  const Tensor positioned = turned(qkv, o.heads + o.kv_heads, 0);
  return attention(positioned, attention_options(call, x.dim(1), x.dim(1), x.dtype()));
}

MultiHeadAttention::Result MultiHeadAttention::operator()(const Tensor& query, const Tensor& key,
                                                          const Tensor& value, const Call& call) {
  const profile::LayerScope scope(*this);
  return finish(attend(query, key, value, call), call);
}

AttentionResult MultiHeadAttention::attend(const Tensor& query, const Tensor& key, const Tensor& value,
                                           const Call& call) {
  const Options& o = options_;
  check(query.rank() == 3 && query.dim(2) == o.d_model && key.rank() == 3 && key.dim(2) == o.kdim &&
            value.rank() == 3 && value.dim(2) == o.vdim,
        "attention",
        "needs query [batch, n_q, {}], key [batch, n_k, {}], value [batch, n_k, {}], not {}, {}, {}",
        o.d_model, o.kdim, o.vdim, query.shape(), key.shape(), value.shape());
  check(!call.cache, "attention", "a cache remembers self attention, not keys and values given beside x");
  check(call.from == 0, "attention", "queries from {} on: give those alone beside keys and values",
        call.from);
  if (o.heads == 0) return nothing(query, key, call);
  return project(query, without_broken_padding(key, call.mask), without_broken_padding(value, call.mask),
                 call);
}

AttentionResult MultiHeadAttention::project(const Tensor& query, const Tensor& key, const Tensor& value,
                                            const Call& call) {
  const Projection to_q = q_proj();
  const Projection to_k = k_proj();
  const Projection to_v = v_proj();
  const Tensor q = linear(query, to_q.weight, to_q.bias);
  const Tensor k = linear(key, to_k.weight, to_k.bias);
  const Tensor v = linear(value, to_v.weight, to_v.bias);
  return attend_projected(q, k, v, call);
}

}  // namespace headlab
