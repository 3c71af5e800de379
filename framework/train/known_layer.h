// Layers that a program knows by name, with what it takes to call one by itself: for the conformance kit.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "framework/nn/module.h"

namespace headlab {

/// An input of a layer. `ids` > 0: i64 numbers below it; else standard normal numbers.
struct LayerInput {
  Shape shape;
  std::int64_t ids = 0;
};

struct KnownLayer {
  std::string name, shows;
  std::vector<LayerInput> inputs;  ///< small: every number's gradient is compared with differences
  std::vector<LayerInput>
      large;  ///< for threads, memory and time; where empty, leading axes 8192 times longer
  std::function<std::unique_ptr<Module>()> build;
  std::function<Tensor(Module&, std::span<const Tensor>)> call;
};

/// known_layer<Linear>("linear", "y = x Wᵀ + b", Linear::Options{.in = 5, .out = 7}, {{{2, 3, 5}}},
///                     [](Linear& layer, std::span<const Tensor> x) { return layer(x[0]); })
template <class Layer, class Options, class Call>
KnownLayer known_layer(std::string name, std::string shows, Options options, std::vector<LayerInput> inputs,
                       Call call) {
  return {std::move(name),
          std::move(shows),
          std::move(inputs),
          {},
          [options = std::move(options)] { return std::make_unique<Layer>(options); },
          [call = std::move(call)](Module& module, std::span<const Tensor> x) -> Tensor {
            return call(dynamic_cast<Layer&>(module), x);
          }};
}

/// headlab's own.
std::vector<KnownLayer> built_in_layers();

}  // namespace headlab
