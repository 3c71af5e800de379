#include "framework/train/layer_pass.h"

#include <cstring>

#include "framework/autograd/backward.h"
#include "framework/core/random.h"

namespace headlab {

namespace {
constexpr std::int64_t large_factor = 8192;
}  // namespace

std::vector<Tensor> draw_layer_inputs(const std::vector<LayerInput>& inputs, DType dtype,
                                      std::uint64_t seed) {
  Random random(seed, Stream::statistics);
  std::vector<Tensor> drawn;
  for (const LayerInput& input : inputs) {
    Array x(input.shape, input.ids > 0 ? DType::i64 : DType::f64);
    if (input.ids > 0) {
      for (std::int64_t& id : x.values<std::int64_t>()) id = random.below(input.ids);
      drawn.emplace_back(x);
    } else {
      for (double& number : x.values<double>()) number = random.normal();
      drawn.emplace_back(x.to(dtype), true);
    }
  }
  return drawn;
}

std::vector<LayerInput> large_layer_inputs(const KnownLayer& layer) {
  if (!layer.large.empty()) return layer.large;
  std::vector<LayerInput> large = layer.inputs;
  for (LayerInput& input : large) {
    if (input.shape.rank() == 0) continue;
    std::vector<std::int64_t> sizes;
    for (int axis = 0; axis < input.shape.rank(); ++axis) sizes.push_back(input.shape[axis]);
    sizes[0] *= large_factor;
    input.shape = Shape(sizes);
  }
  return large;
}

std::unique_ptr<Module> build_layer(const KnownLayer& layer, DType dtype, std::uint64_t seed) {
  const DefaultDType type(dtype);
  std::unique_ptr<Module> module = layer.build();
  check(module != nullptr, "check-layer", "the builder of '{}' returned nothing", layer.name);
  initialise(*module, seed);
  // A bias of 0 or a weight of 1 would hide a gradient that is wrong by a factor of it.
  Random random(seed, Stream::statistics);
  for (const NamedParameter& named : module->parameters()) {
    Array& value = named.parameter->tensor().change();
    Array shift = value.to(DType::f64);
    for (double& number : shift.values<double>()) number += 0.1 * random.normal();
    const Array shifted = shift.to(dtype);
    std::memcpy(value.raw(), shifted.raw(), static_cast<std::size_t>(value.bytes()));
  }
  module->eval();
  return module;
}

LayerPass run_layer(const KnownLayer& layer, Module& module, std::vector<Tensor>& inputs) {
  for (Tensor& input : inputs) input.clear_grad();
  for (const NamedParameter& named : module.parameters()) named.parameter->tensor().clear_grad();
  const Tensor result = layer.call(module, inputs);
  LayerPass pass;
  pass.arrays.emplace_back("the result", result.value().copy());
  if (!result.requires_grad()) return pass;
  // A cotangent without symmetry, the same for every type and number of threads.
  Array cotangent(result.shape(), DType::f64);
  for (std::int64_t i = 0; i < cotangent.size(); ++i)
    cotangent.data<double>()[i] = static_cast<double>((i * 37 + 11) % 101) / 64 - 0.75;
  backward(result, {.seed = cotangent.to(result.dtype())});
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].has_grad())
      pass.arrays.emplace_back(fmt::format("the gradient of input {}", i), inputs[i].grad().copy());
  }
  for (const NamedParameter& named : module.parameters()) {
    if (named.parameter->tensor().has_grad())
      pass.arrays.emplace_back("the gradient of " + named.path, named.parameter->tensor().grad().copy());
  }
  return pass;
}

std::string difference(const LayerPass& a, const LayerPass& b) {
  if (a.arrays.size() != b.arrays.size()) return "which gradients there are";
  for (std::size_t i = 0; i < a.arrays.size(); ++i) {
    const Array& x = a.arrays[i].second;
    const Array& y = b.arrays[i].second;
    if (a.arrays[i].first != b.arrays[i].first) return "which gradients there are";
    if (x.shape() != y.shape()) return fmt::format("the shape of {}", a.arrays[i].first);
    if (x.size() > 0 && std::memcmp(x.raw(), y.raw(), static_cast<std::size_t>(x.bytes())) != 0)
      return a.arrays[i].first;
  }
  return {};
}

}  // namespace headlab
