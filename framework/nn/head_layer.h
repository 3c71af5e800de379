// HeadLayer: what the laboratory needs to know of a layer with attention heads. MultiHeadAttention implements
// it, and so may any layer of a user's own; nothing further down asks for a concrete class.
#pragma once

#include <cstdint>
#include <vector>

#include "framework/autograd/tensor.h"
#include "framework/nn/module.h"

namespace headlab {

class HeadLayer {
 public:
  virtual ~HeadLayer() = default;

  virtual std::int64_t heads() const = 0;
  /// Width of one head's context z.
  virtual std::int64_t head_size() const = 0;
  /// The layer as a module, for its path.
  virtual Module& module() = 0;
  /// Whether keys come from another sequence.
  virtual bool cross() const = 0;

  /// Multiplies each head's context before W_O: [heads] or [B, heads]. Undefined: no gate. Error (at the
  /// call): another shape.
  void set_gate(Tensor gate) { gate_ = std::move(gate); }
  const Tensor& gate() const { return gate_; }

  /// While on, each forward pass leaves its weights [B, heads, n_q, n_k] here, before dropout.
  void keep_pattern(bool on) {
    keep_pattern_ = on;
    if (!on) pattern_ = Array();
  }
  /// Of the last forward pass; absent when none was kept.
  const Array& pattern() const { return pattern_; }

 protected:
  bool keeps_pattern() const { return keep_pattern_; }
  void set_pattern(Array pattern) { pattern_ = std::move(pattern); }

 private:
  Tensor gate_;
  bool keep_pattern_ = false;
  Array pattern_;
};

/// All head layers of a model, in the order of declaration.
std::vector<HeadLayer*> head_layers(Module& model);

/// While it lives, all head layers of a model keep their patterns.
class KeepPatterns {
 public:
  explicit KeepPatterns(Module& model);
  ~KeepPatterns();
  KeepPatterns(const KeepPatterns&) = delete;
  KeepPatterns& operator=(const KeepPatterns&) = delete;

 private:
  std::vector<HeadLayer*> layers_;
};

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

}  // namespace headlab
