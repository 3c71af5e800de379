#include "framework/nn/norm.h"

#include "framework/ops/norm.h"

namespace headlab {

namespace {
Shape width(std::int64_t d_model, std::string_view where) {
  check(d_model >= 1, where, "d_model {} is not positive", d_model);
  return {d_model};
}
}  // namespace

LayerNorm::LayerNorm(const Options& o)
    : weight(this, "weight", width(o.d_model, "LayerNorm"), Init::ones(), Role::norm), epsilon_(o.epsilon) {
  if (o.bias) bias.emplace(this, "bias", Shape{o.d_model}, Init::zeros(), Role::bias);
}
Tensor LayerNorm::operator()(const Tensor& x) {
  return layer_norm(x, weight, bias ? bias->tensor() : Tensor(), epsilon_);
}

RMSNorm::RMSNorm(const Options& o)
    : weight(this, "weight", width(o.d_model, "RMSNorm"), Init::ones(), Role::norm), epsilon_(o.epsilon) {}
Tensor RMSNorm::operator()(const Tensor& x) { return rms_norm(x, weight, epsilon_); }

}  // namespace headlab
