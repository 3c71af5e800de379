// Gradients of gates alone.
#pragma once

#include <vector>

#include "framework/nn/module.h"

namespace headlab {

/// While it lives, parameters of a model ask for no gradient; afterwards those that did do again.
class Frozen {
 public:
  explicit Frozen(Module& model) {
    for (const NamedParameter& named : model.parameters()) {
      if (named.parameter->tensor().requires_grad()) thawed_.push_back(named.parameter);
    }
    set(false);
  }
  ~Frozen() { set(true); }
  Frozen(const Frozen&) = delete;
  Frozen& operator=(const Frozen&) = delete;

 private:
  void set(bool on) {
    for (Parameter* parameter : thawed_) parameter->tensor().set_requires_grad(on);
  }
  std::vector<Parameter*> thawed_;
};

}  // namespace headlab
