#include "framework/nn/feed_forward.h"

#include "framework/ops/arithmetic.h"
#include "framework/ops/elementwise.h"
#include "framework/ops/feed_forward.h"

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

Tensor FeedForward::operator()(const Tensor& x) { return dropout_(network(x)); }

Tensor FeedForward::network(const Tensor& x) {
  const auto bias_of = [](const Child<Linear>& map) { return map->bias ? map->bias->tensor() : Tensor(); };
  const FeedForwardWeights weights{up->weight, bias_of(up), down->weight, bias_of(down)};
  switch (activation_) {
    case Activation::gelu_tanh:
      return feed_forward_gelu(x, weights);
    case Activation::gelu_exact:
      return feed_forward_gelu_exact(x, weights);
    case Activation::relu: {
      const Tensor hidden = relu(up(x));
      return down(hidden);
    }
    case Activation::swiglu:
      break;
  }
  const Tensor hidden = up(x);
  const Tensor open = silu((*gate)(x));
  return down(mul(open, hidden));
}

}  // namespace headlab
