#include "framework/nn/linear.h"

#include "framework/ops/linear.h"

namespace headlab {

namespace {
Shape weight_shape(const Linear::Options& o) {
  check(o.in >= 1 && o.out >= 1, "Linear", "in {} and out {} must be positive", o.in, o.out);
  return {o.out, o.in};
}
}  // namespace

Linear::Linear(const Options& o) : weight(this, "weight", weight_shape(o), o.weights, Role::matrix) {
  if (o.bias) bias.emplace(this, "bias", Shape{o.out}, Init::zeros(), Role::bias);
}

Tensor Linear::operator()(const Tensor& x) { return linear(x, weight, bias ? bias->tensor() : Tensor()); }

}  // namespace headlab
