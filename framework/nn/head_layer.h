// HeadLayer: what the laboratory needs to know of a layer with attention heads. MultiHeadAttention implements
// it, and so may any layer of a user's own; nothing further down asks for a concrete class.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "framework/autograd/tensor.h"
#include "framework/nn/hooks.h"
#include "framework/nn/module.h"
#include "framework/ops/telemetry.h"

namespace headlab {

/// The points at which a layer's heads can be looked at, by the layer's path: "blocks.3.attn.pattern". While
/// a layer runs with a cache, q, k, v, z and out are those of the new tokens; scores and pattern have all
/// keys.
struct HeadSites {
  explicit HeadSites(Module* layer);
  HookPoint q;        ///< [B, n_q, heads·d_k], as it enters the scores: normalised and turned by position
  HookPoint k;        ///< [B, n_k, kv_heads·d_k], likewise
  HookPoint v;        ///< [B, n_k, kv_heads·d_v]
  HookPoint scores;   ///< [B, heads, n_q, n_k], with biases, before the mask
  HookPoint pattern;  ///< [B, heads, n_q, n_k], the weights before dropout
  HookPoint z;        ///< [B, n_q, heads·d_v], contexts before the gate and W_O
  HookPoint out;      ///< what the layer returns
};

/// The matrices of one head in row form, f64 copies: a token x asks with x·W_Q, is found by x·W_K, gives
/// x·W_V, and the head writes z·W_O. Biases, norms and turns by position are left out.
struct HeadWeights {
  Array q;  ///< W_Q [d_model, d_k]
  Array k;  ///< W_K [kdim, d_k]
  Array v;  ///< W_V [vdim, d_v]
  Array o;  ///< W_O [d_v, d_model]
};

class HeadLayer {
 public:
  explicit HeadLayer(Module* self) : sites(self) {}
  virtual ~HeadLayer() = default;
  HeadLayer(const HeadLayer&) = delete;
  HeadLayer& operator=(const HeadLayer&) = delete;

  virtual std::int64_t heads() const = 0;
  /// Width of one head's context z.
  virtual std::int64_t head_size() const = 0;
  /// The layer as a module, for its path.
  virtual Module& module() = 0;
  /// Whether keys come from another sequence.
  virtual bool cross() const = 0;
  /// For figures that need no data: ranks, copying, composition. A layer may have none to show (the default);
  /// they are then absent. Error: no such head.
  virtual std::optional<HeadWeights> head_weights(std::int64_t head);

  /// For removing heads. Heads come in groups of this many neighbours that can only go together.
  virtual std::int64_t heads_together() const { return 1; }
  /// The parameters, by their names in this layer, of a layer with these heads alone (rising numbers), their
  /// contexts multiplied by `scales`. Errors: a layer that does not know how; a group that is torn apart.
  virtual std::map<std::string, Array> state_of_heads(std::span<const std::int64_t> kept,
                                                      std::span<const double> scales);

  /// Multiplies each head's context before W_O: [heads] or [B, heads]. Undefined: no gate. Error (at the
  /// call): another shape.
  void set_gate(Tensor gate) { gate_ = std::move(gate); }
  const Tensor& gate() const { return gate_; }

  /// While options are set, each forward pass leaves its telemetry here.
  void want_telemetry(std::optional<TelemetryOptions> options) {
    telemetry_options_ = std::move(options);
    telemetry_.reset();
  }
  const std::optional<TelemetryOptions>& telemetry_options() const { return telemetry_options_; }
  /// Of the last forward pass; absent when none was asked for.
  const std::optional<Telemetry>& telemetry() const { return telemetry_; }

  /// A layer of one's own passes its tensors through them; sites that it leaves out never fire.
  HeadSites sites;

 protected:
  /// For layers: what a forward pass found.
  void set_telemetry(std::optional<Telemetry> telemetry) { telemetry_ = std::move(telemetry); }

 private:
  Tensor gate_;
  std::optional<TelemetryOptions> telemetry_options_;
  std::optional<Telemetry> telemetry_;
};

/// All head layers of a model, in the order of declaration.
std::vector<HeadLayer*> head_layers(Module& model);

/// While it lives, a layer's heads are gated; the gate from before is put back afterwards.
class GateScope {
 public:
  GateScope(HeadLayer& layer, Tensor gate) : layer_(layer), before_(layer.gate()) {
    layer.set_gate(std::move(gate));
  }
  ~GateScope() { layer_.set_gate(before_); }
  GateScope(const GateScope&) = delete;
  GateScope& operator=(const GateScope&) = delete;

 private:
  HeadLayer& layer_;
  Tensor before_;
};

/// While it lives, a layer leaves telemetry; what was asked for before is put back afterwards.
class TelemetryScope {
 public:
  TelemetryScope(HeadLayer& layer, TelemetryOptions options)
      : layer_(layer), before_(layer.telemetry_options()) {
    layer.want_telemetry(std::move(options));
  }
  ~TelemetryScope() { layer_.want_telemetry(std::move(before_)); }
  TelemetryScope(const TelemetryScope&) = delete;
  TelemetryScope& operator=(const TelemetryScope&) = delete;

 private:
  HeadLayer& layer_;
  std::optional<TelemetryOptions> before_;
};

}  // namespace headlab
