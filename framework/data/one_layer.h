// The set-up that `offsets`, `prev` and `roles` share: one causal attention layer without an MLP, learned
// positions, a read-out with bias.
#pragma once

#include <cstdint>
#include <string>

#include "framework/data/needs.h"
#include "framework/data/recipe.h"

namespace headlab {

/// Without streams and read-outs. Positions start with deviation position_gain / √d_model: they decide
/// whether heads find an offset each or mix them.
Needs one_layer_needs(std::int64_t context, double position_gain);
/// The deviation 1/√d_model of their token embeddings.
double one_layer_embedding_std();
Recipe one_layer_recipe(std::int64_t steps);

/// a … z, then A … Z, for id < 52.
std::string letter(std::int64_t id);

}  // namespace headlab
