#include "framework/data/language.h"

#include <string_view>

namespace headlab {

Needs language_needs(std::int64_t layers, bool mlp) {
  Needs needs;
  needs.layers = layers;
  needs.d_model = 32;
  needs.mlp = mlp ? 2 * needs.d_model : 0;
  needs.activation = Needs::Activation::gelu_exact;
  needs.positions = Needs::Positions::learned;
  needs.position_std = language_embedding_std;
  needs.weights = Needs::Weights::xavier_uniform;
  return needs;
}

Recipe language_recipe(std::int64_t steps) {
  Recipe recipe;
  recipe.batch = 32;
  recipe.steps = steps;
  recipe.learning_rate = 5e-3;
  recipe.warmup_share = 0.05;
  recipe.floor_share = 0.05;
  recipe.beta2 = 0.98;
  recipe.weight_decay = 0.01;
  return recipe;
}

bool held_out_sentence(std::span<const std::int64_t> words) {
  std::uint64_t sum = 0;
  for (const std::int64_t word : words) sum = hash(sum, static_cast<std::uint64_t>(word));
  return sum % 8 == 0;
}

Lexicon::Lexicon(std::initializer_list<std::vector<std::string>> kinds) {
  for (const std::vector<std::string>& kind : kinds) {
    begins_.push_back(size());
    words_.insert(words_.end(), kind.begin(), kind.end());
  }
  begins_.push_back(size());
}

}  // namespace headlab
