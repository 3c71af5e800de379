#include "framework/nn/feed_forward.h"

#include "framework/ops/arithmetic.h"
#include "framework/ops/elementwise.h"

namespace headlab {

FeedForward::FeedForward(const Options& o)
    : up(this, "up", Linear::Options{.in = o.d_model, .out = o.hidden, .bias = o.bias, .weights = o.weights}),
      down(this, "down",
           Linear::Options{.in = o.hidden,
                           .out = o.d_model,
                           .bias = o.bias,
                           .weights = o.down_weights.value_or(o.weights)}),
      activation_(o.activation),
      dropout_(this, "dropout", o.dropout) {
  if (o.activation == Activation::swiglu) {
    gate.emplace(this, "gate",
                 Linear::Options{.in = o.d_model, .out = o.hidden, .bias = o.bias, .weights = o.weights});
  }
}

Tensor FeedForward::operator()(const Tensor& x) {
  Tensor hidden = up(x);
  switch (activation_) {
    case Activation::gelu_tanh:
      hidden = gelu(hidden);
      break;
    case Activation::gelu_exact:
      hidden = gelu_exact(hidden);
      break;
    case Activation::relu:
      hidden = relu(hidden);
      break;
    case Activation::swiglu: {
      const Tensor open = silu((*gate)(x));
      hidden = mul(open, hidden);
      break;
    }
  }
  return dropout_(down(hidden));
}

}  // namespace headlab
