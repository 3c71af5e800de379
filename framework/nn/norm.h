// Layer normalisation (Ba et al. 2016) and root-mean-square normalisation (Zhang & Sennrich 2019) over the
// last axis.
#pragma once

#include <optional>

#include "framework/nn/module.h"

namespace headlab {

/// weight [d_model] starts at 1, bias [d_model] at 0.
class LayerNorm : public Module {
 public:
  struct Options {
    std::int64_t d_model = 0;
    bool bias = true;
    double epsilon = 1e-5;
  };
  /// Error: d_model is not positive.
  explicit LayerNorm(const Options& options);
  /// x [..., d_model]; biased variance, epsilon inside the root.
  Tensor operator()(const Tensor& x);

  Parameter weight;
  std::optional<Parameter> bias;

 private:
  double epsilon_;
};

class RMSNorm : public Module {
 public:
  struct Options {
    std::int64_t d_model = 0;
    double epsilon = 1e-6;
  };
  /// Error: d_model is not positive.
  explicit RMSNorm(const Options& options);
  /// x [..., d_model]
  Tensor operator()(const Tensor& x);

  Parameter weight;

 private:
  double epsilon_;
};

}  // namespace headlab
