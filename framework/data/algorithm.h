// The set-up that `copy`, `reverse`, `sort`, `addition` and `glyphs` share.
#pragma once

#include <cstdint>

#include "framework/data/needs.h"
#include "framework/data/recipe.h"

namespace headlab {

/// Pre-norm, d_model 64, an MLP of `mlp` with tanh-GELU, weights normal with 1/√fan_in, learned positions of
/// deviation 0.5. Without streams, read-outs and lengths.
Needs algorithm_needs(std::int64_t layers, std::int64_t mlp);
/// The deviation of their token embeddings.
constexpr double algorithm_embedding_std = 0.5;
Recipe algorithm_recipe(std::int64_t batch, std::int64_t steps);

}  // namespace headlab
