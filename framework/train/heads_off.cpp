#include "framework/train/heads_off.h"

#include <algorithm>

#include "framework/core/check.h"
#include "framework/nn/head_layer.h"

namespace headlab {

namespace {

HeadLayer& layer_with(const std::vector<HeadLayer*>& layers, const HeadOff& off) {
  check(off.layer >= 0 && off.layer < std::ssize(layers), "train",
        "head {}.{} cannot go off: the model has {} layers with heads", off.layer, off.head, layers.size());
  HeadLayer& layer = *layers[static_cast<std::size_t>(off.layer)];
  check(off.head >= 0 && off.head < layer.heads(), "train", "head {}.{} cannot go off: layer {} has {} heads",
        off.layer, off.head, off.layer, layer.heads());
  return layer;
}

}  // namespace

void switch_heads_off(Model& model, std::span<const HeadOff> heads, std::int64_t step) {
  const std::vector<HeadLayer*> layers = head_layers(model);
  std::vector<Array> gates(layers.size());
  for (const HeadOff& off : heads) {
    HeadLayer& layer = layer_with(layers, off);
    if (off.step >= step) continue;
    Array& gate = gates[static_cast<std::size_t>(off.layer)];
    if (!gate) gate = Array::full({layer.heads()}, 1);
    gate.data<float>()[off.head] = 0;
  }
  for (std::size_t i = 0; i < layers.size(); ++i) {
    if (gates[i]) layers[i]->set_gate(Tensor(gates[i]));
  }
}

void HeadsOff::on_start(Model& model, const Task&, std::int64_t, std::int64_t) {
  const std::vector<HeadLayer*> layers = head_layers(model);
  for (const HeadOff& off : heads_) layer_with(layers, off).set_gate(Tensor());
}

void HeadsOff::before_step(Model& model, std::int64_t step) { switch_heads_off(model, heads_, step + 1); }

}  // namespace headlab
