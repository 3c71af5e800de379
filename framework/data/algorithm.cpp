#include "framework/data/algorithm.h"

namespace headlab {

Needs algorithm_needs(std::int64_t layers, std::int64_t mlp) {
  Needs needs;
  needs.layers = layers;
  needs.d_model = 64;
  needs.mlp = mlp;
  needs.activation = Needs::Activation::gelu_tanh;
  needs.positions = Needs::Positions::learned;
  needs.position_std = algorithm_embedding_std;
  needs.weights = Needs::Weights::fan_in;
  return needs;
}

Recipe algorithm_recipe(std::int64_t batch, std::int64_t steps) {
  Recipe recipe;
  recipe.batch = batch;
  recipe.steps = steps;
  recipe.learning_rate = 3e-3;
  recipe.warmup_share = 0.05;
  recipe.floor_share = 0.05;
  recipe.beta2 = 0.98;
  recipe.weight_decay = 0.01;
  return recipe;
}

}  // namespace headlab
