// The position-wise network of a transformer block.
#pragma once

#include <optional>

#include "framework/nn/dropout.h"
#include "framework/nn/linear.h"

namespace headlab {

class FeedForward : public Module {
 public:
  /// swiglu: down(silu(gate(x)) ∘ up(x)) (Shazeer 2020); the others: down(f(up(x))).
  enum class Activation { gelu_tanh, gelu_exact, relu, swiglu };
  struct Options {
    std::int64_t d_model = 0;
    std::int64_t hidden = 0;
    Activation activation = Activation::gelu_tanh;
    bool bias = true;
    double dropout = 0;  ///< of the result
    Init weights = Init::xavier_uniform();
    std::optional<Init> down_weights = {};  ///< the other one's rule unless given
  };
  explicit FeedForward(const Options& options);
  /// x [..., d_model] → [..., d_model]
  Tensor operator()(const Tensor& x);

  Child<Linear> up, down;
  std::optional<Child<Linear>> gate;

 private:
  Tensor network(const Tensor& x);

  Activation activation_;
  Child<Dropout> dropout_;
};

}  // namespace headlab
