#include "framework/nn/head_layer.h"

namespace headlab {

std::vector<HeadLayer*> head_layers(Module& model) {
  std::vector<HeadLayer*> layers;
  model.visit([&](Module& module) {
    if (auto* layer = dynamic_cast<HeadLayer*>(&module)) layers.push_back(layer);
  });
  return layers;
}

KeepPatterns::KeepPatterns(Module& model) : layers_(head_layers(model)) {
  for (HeadLayer* layer : layers_) layer->keep_pattern(true);
}
KeepPatterns::~KeepPatterns() {
  for (HeadLayer* layer : layers_) layer->keep_pattern(false);
}

}  // namespace headlab
