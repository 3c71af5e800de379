// Multi-head attention (Vaswani et al. 2017): self, cross and causal; MHA, GQA and MQA in one layer.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "framework/nn/head_layer.h"
#include "framework/nn/kv_cache.h"
#include "framework/nn/linear.h"
#include "framework/nn/norm.h"
#include "framework/ops/attention.h"
#include "framework/ops/relative_position.h"
#include "framework/ops/rotary.h"

namespace headlab {

class MultiHeadAttention : public Module, public HeadLayer {
 public:
  struct Rotary {
    double base = 10000;
    RotaryPairing pairing = RotaryPairing::halves;
    std::int64_t width = 0;  ///< channels of a head that turn, from the first; 0: all
  };
  /// Queries and keys are normalised head by head (Henry et al. 2020), before they are turned.
  enum class QkNorm { none, rms, layer };
  /// Shaw et al. 2018: a learned vector for every distance is added to the key, scale·q·(k_j + R[δ]).
  /// Distances beyond ±(reach − 1) share the last vector. Runs on the composite.
  struct RelativeKeys {
    std::int64_t reach = 0;
    double std = 0;             ///< R starts normal with this deviation
    bool bidirectional = true;  ///< false, for causal attention: no vectors for keys ahead
  };
  struct Options {
    std::int64_t d_model = 0;
    std::int64_t heads = 1;  ///< 0, with d_k: a layer that lost all its heads
    std::int64_t kv_heads =
        0;                  ///< 0: heads. Else divides heads; consecutive query heads share a key/value head
    std::int64_t d_k = 0;   ///< 0: d_model / heads
    std::int64_t d_v = 0;   ///< 0: d_k
    std::int64_t kdim = 0;  ///< width of the keys' input; 0: d_model
    std::int64_t vdim = 0;  ///< width of the values' input; 0: d_model
    bool bias = true;
    bool out_proj = true;  ///< without it the result is the heads' contexts side by side, heads·d_v wide
    double dropout = 0;    ///< of the weights, in training mode
    std::optional<double> scale = {};   ///< of q·k; 1/√d_k unless given
    std::optional<Rotary> rotary = {};  ///< turn queries and keys by position
    bool alibi = false;                 ///< −slope·|δ| is added to scores
    /// T5's learned bias, one table a layer. For causal attention set bidirectional = false: half of the
    /// buckets are for keys ahead.
    std::optional<RelativeBuckets> relative_bias = {};
    std::optional<RelativeKeys> relative_keys = {};
    /// k_j becomes σ(a)·k_j + (1 − σ(a))·k_{j−1} with a learned a per key head, 0 at first (Olsson et al.
    /// 2022), before keys are turned: one layer then sees what stood before a key.
    bool smeared_keys = false;
    QkNorm qk_norm = QkNorm::none;
    double softcap = 0;       ///< scores become softcap·tanh(score/softcap); 0: off
    bool sink = false;        ///< a learned score per head, 0 at first, of a key without a value
    std::int64_t window = 0;  ///< Mask::window on every call; 0: off
    /// Scores of q [B, heads, n_q, d_k] and k [B, heads, n_k, d_k] in place of scale·q·kᵀ: made of operations
    /// on Tensors, it is differentiable.
    std::function<Tensor(const Tensor& q, const Tensor& k)> score = {};
    bool cross = false;  ///< keys and values come from another sequence: only tells the laboratory
    Init weights = Init::xavier_uniform();
    std::optional<Init> out_weights = {};  ///< the other ones' rule unless given
  };
  /// Where kdim and vdim are d_model, one parameter qkv.weight [(heads + 2·kv_heads)·d, d_model] holds W_Q,
  /// W_K and W_V (initialised as three); else q.weight, k.weight and v.weight. Head i owns rows i·d … (i+1)·d
  /// of each. Errors, naming both values: heads < 1; d_model not a positive multiple of heads when d_k is not
  /// given; kv_heads that do not divide heads; an odd d_k with rotary; a dropout outside [0, 1].
  explicit MultiHeadAttention(const Options& options);

  struct Call {
    Mask mask = {};
    bool weights = false;          ///< also return the weights
    bool average_weights = false;  ///< … averaged over heads
    /// Self attention without gradients or dropout: the new tokens' keys and values are appended, and queries
    /// see all of them; masks speak of all of them. The bits of the last rows of one call for all tokens.
    /// An error later in the call leaves the cache longer: clear it. Error: smeared keys.
    KeyValueCache* cache = nullptr;
    /// Self attention without a cache: queries before this position are left out. The bits of the other rows
    /// of a call for all.
    std::int64_t from = 0;
  };
  struct Result {
    Tensor out;      ///< [B, n_q, d_model]
    Tensor weights;  ///< [B, heads, n_q, n_k] (averaged: [B, n_q, n_k]), before dropout; undefined unless
                     ///< asked for
  };
  /// Self attention: x [B, T, d_model].
  Result operator()(const Tensor& x, const Call& call);
  Result operator()(const Tensor& x) { return (*this)(x, Call{}); }
  /// query [B, n_q, d_model], key [B, n_k, kdim], value [B, n_k, vdim].
  Result operator()(const Tensor& query, const Tensor& key, const Tensor& value, const Call& call);
  Result operator()(const Tensor& query, const Tensor& key, const Tensor& value) {
    return (*this)(query, key, value, Call{});
  }

  /// The two halves of a call without weights: the heads' contexts [B, n_q, heads·d_v], and what comes of
  /// them, from sites.z and the gate on. Together they give the bits of a call.
  Tensor contexts(const Tensor& x, const Call& call) { return keep_telemetry(attend(x, call)).out; }
  Tensor contexts(const Tensor& query, const Tensor& key, const Tensor& value, const Call& call) {
    return keep_telemetry(attend(query, key, value, call)).out;
  }
  Tensor combine(const Tensor& contexts);

  std::int64_t heads() const override { return options_.heads; }
  std::int64_t head_size() const override { return options_.d_v; }
  /// Query heads that share a key/value head.
  std::int64_t heads_together() const override {
    return options_.kv_heads > 0 ? options_.heads / options_.kv_heads : 1;
  }
  std::map<std::string, Array> state_of_heads(std::span<const std::int64_t> kept,
                                              std::span<const double> scales) override;
  Module& module() override { return *this; }
  bool cross() const override { return options_.cross; }
  /// Absent without an output projection and with a score function of one's own.
  std::optional<HeadWeights> head_weights(std::int64_t head) override;
  /// The options with every default resolved.
  const Options& options() const { return options_; }
  /// What a call would run on, and why: "streaming" or "composite: a hook reads `scores`". The composite
  /// gives the same result up to rounding, but takes memory for all weights.
  std::string attention_path(const Call& call) const;
  std::string attention_path() const { return attention_path(Call{}); }

  /// The projections of queries, keys and values: parts of qkv (as views) or the separate ones; biases
  /// undefined without.
  struct Projection {
    Tensor weight, bias;
  };
  Projection q_proj(), k_proj(), v_proj();

  std::optional<Parameter> qkv_weight, q_weight, k_weight, v_weight;
  std::optional<Parameter> qkv_bias;
  std::optional<Parameter> sink;           ///< [heads]; does not decay
  std::optional<Parameter> relative_bias;  ///< [buckets, heads], N(0, 1/d_model) at first
  std::optional<Parameter> relative_keys;  ///< [reach or 2·reach − 1, heads·d_k], from the furthest behind on
  std::optional<Parameter> smear;          ///< a, [kv_heads]; does not decay
  std::optional<Child<LayerNorm>> q_layer_norm, k_layer_norm;  ///< over d_k
  std::optional<Child<RMSNorm>> q_rms_norm, k_rms_norm;
  std::optional<Child<Linear>> out;
  std::optional<Parameter> out_bias;  ///< "out.bias" of a layer of no heads, which adds nothing else

 private:
  Projection rows(const std::optional<Parameter>& own, std::int64_t from, std::int64_t to);
  Tensor turned(const Tensor& x, std::int64_t heads, std::int64_t first_position) const;
  Tensor normed(const Tensor& x, std::int64_t heads, bool queries);
  Tensor smeared(const Tensor& k) const;
  Tensor score_with_relative_keys(const Tensor& q, const Tensor& k) const;
  bool packs(const Call& call) const;
  std::string why_composite(const Call& call) const;
  AttentionOptions attention_options(const Call& call, std::int64_t n_q, std::int64_t n_k, DType dtype);
  AttentionResult attend(const Tensor& x, const Call& call);
  AttentionResult attend(const Tensor& query, const Tensor& key, const Tensor& value, const Call& call);
  AttentionResult project(const Tensor& query, const Tensor& key, const Tensor& value, const Call& call);
  AttentionResult attend_projected(Tensor q, Tensor k, Tensor v, const Call& call);
  AttentionResult nothing(const Tensor& query, const Tensor& key, const Call& call) const;
  AttentionResult keep_telemetry(AttentionResult result);
  Result finish(AttentionResult result, const Call& call);

  Options options_;
  std::uint64_t calls_ = 0;
};

}  // namespace headlab
