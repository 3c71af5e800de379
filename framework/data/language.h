// What the tasks about small invented languages share: `agreement`, `coreference`, `senses`, `translate`.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "framework/core/random.h"
#include "framework/data/needs.h"
#include "framework/data/recipe.h"

namespace headlab {

/// d_model 32, learned positions, an exact-GELU MLP twice as wide where asked for, Xavier-uniform weights.
/// Without streams, read-outs and lengths.
Needs language_needs(std::int64_t layers, bool mlp);
/// The deviation of their token embeddings and positions.
constexpr double language_embedding_std = 0.1;
Recipe language_recipe(std::int64_t steps);

/// One sentence in eight is held out: chosen by its words, so that training never sees it.
bool held_out_sentence(std::span<const std::int64_t> words);
/// Draws sentences until one is held out, or is not. `draw(random)` returns something with `words`.
template <class F>
auto draw_sentence(Random& random, bool held_out, const F& draw) {
  auto sentence = draw(random);
  while (held_out_sentence(sentence.words) != held_out) sentence = draw(random);
  return sentence;
}

/// Word kinds one after the other; ids count through all of them.
class Lexicon {
 public:
  explicit Lexicon(std::initializer_list<std::vector<std::string>> kinds);
  std::int64_t size() const { return static_cast<std::int64_t>(words_.size()); }
  std::int64_t first(std::size_t kind) const { return begins_[kind]; }
  std::int64_t count(std::size_t kind) const { return begins_[kind + 1] - begins_[kind]; }
  std::int64_t any(std::size_t kind, Random& random) const { return first(kind) + random.below(count(kind)); }
  const std::string& word(std::int64_t id) const { return words_[static_cast<std::size_t>(id)]; }

 private:
  std::vector<std::string> words_;
  std::vector<std::int64_t> begins_;
};

}  // namespace headlab
