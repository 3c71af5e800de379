#include "framework/data/one_layer.h"

namespace headlab {

double one_layer_embedding_std() { return 0.125; }  // 1/√64

Needs one_layer_needs(std::int64_t context, double position_gain) {
  Needs needs;
  needs.context = context;
  needs.layers = 1;
  needs.d_model = 64;
  needs.positions = Needs::Positions::learned;
  needs.position_std = position_gain * 0.125;
  needs.weights = Needs::Weights::xavier_normal;
  return needs;
}

Recipe one_layer_recipe(std::int64_t steps) {
  Recipe recipe;
  recipe.batch = 32;
  recipe.steps = steps;
  recipe.learning_rate = 1e-2;
  recipe.warmup_share = 0.05;
  recipe.floor_share = 0.05;
  recipe.beta2 = 0.98;
  recipe.weight_decay = 0.1;
  recipe.decay_positions = false;
  return recipe;
}

std::string letter(std::int64_t id) {
  return std::string(1, static_cast<char>(id < 26 ? 'a' + id : 'A' + (id - 26)));
}

}  // namespace headlab
