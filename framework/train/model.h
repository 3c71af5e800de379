// Model: what a trainer, an evaluation or an inspection needs to know of a network.
#pragma once

#include "framework/data/batch.h"
#include "framework/data/needs.h"
#include "framework/nn/module.h"

namespace headlab {

class Model : public Module {
 public:
  explicit Model(Needs needs) : needs_(std::move(needs)) {}
  /// [B, T, needs().logits()], the read-outs one after the other. Errors: inputs that do not fit needs().
  virtual Tensor logits(const Batch& batch) = 0;
  /// What it was built from.
  const Needs& needs() const { return needs_; }

 private:
  Needs needs_;
};

}  // namespace headlab
