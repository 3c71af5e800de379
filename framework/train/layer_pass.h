// One call of a layer, forward and backward, with all that comes out of it: what the conformance kit
// compares.
#pragma once

#include "framework/train/known_layer.h"

namespace headlab {

/// Of normal numbers, with gradients; ids as i64.
std::vector<Tensor> draw_layer_inputs(const std::vector<LayerInput>& inputs, DType dtype, std::uint64_t seed);
/// KnownLayer::large, or the small ones with leading axes 8192 times longer.
std::vector<LayerInput> large_layer_inputs(const KnownLayer& layer);

/// In evaluation mode, first values shifted a little, so that none are all 0 or 1. Error: nothing was built.
std::unique_ptr<Module> build_layer(const KnownLayer& layer, DType dtype, std::uint64_t seed);

/// Copies of the result and of all gradients, with the names that a message gives them.
struct LayerPass {
  std::vector<std::pair<std::string, Array>> arrays;
};
LayerPass run_layer(const KnownLayer& layer, Module& module, std::vector<Tensor>& inputs);

/// Name of the first array that differs in a bit; empty: none.
std::string difference(const LayerPass& a, const LayerPass& b);

}  // namespace headlab
