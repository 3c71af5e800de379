#include "framework/nn/head_layer.h"

namespace headlab {

HeadSites::HeadSites(Module* layer)
    : q(layer, "q"),
      k(layer, "k"),
      v(layer, "v"),
      scores(layer, "scores"),
      pattern(layer, "pattern"),
      z(layer, "z"),
      out(layer, "out") {}

std::optional<HeadWeights> HeadLayer::head_weights(std::int64_t) { return std::nullopt; }
std::map<std::string, Array> HeadLayer::state_of_heads(std::span<const std::int64_t>,
                                                       std::span<const double>) {
  fail("head layer", "{} does not know how to go on without some of its heads", module().path());
}

std::vector<HeadLayer*> head_layers(Module& model) {
  std::vector<HeadLayer*> layers;
  model.visit([&](Module& module) {
    if (auto* layer = dynamic_cast<HeadLayer*>(&module)) layers.push_back(layer);
  });
  return layers;
}

}  // namespace headlab
