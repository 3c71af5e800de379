// y = x Wᵀ + b.
#pragma once

#include <optional>

#include "framework/nn/module.h"

namespace headlab {

class Linear : public Module {
 public:
  struct Options {
    std::int64_t in = 0;
    std::int64_t out = 0;
    bool bias = true;
    Init weights = Init::xavier_uniform();
  };
  /// weight [out, in], bias [out] (starts at 0). Error: in or out is not positive.
  explicit Linear(const Options& options);
  /// x [..., in] → [..., out]
  Tensor operator()(const Tensor& x);

  Parameter weight;
  std::optional<Parameter> bias;
};

}  // namespace headlab
