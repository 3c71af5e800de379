#include "framework/data/sort.h"

#include <algorithm>

#include "framework/data/algorithm.h"

namespace headlab {

Needs SortTask::needs() const {
  Needs needs = algorithm_needs(1, 128);
  needs.streams = {{"token", tokens, algorithm_embedding_std}};
  needs.readouts = {{"next", tokens}};
  needs.context = context;
  return needs;
}

Recipe SortTask::recipe() const { return algorithm_recipe(64, 200); }

std::vector<HeadTarget> SortTask::head_targets() const {
  return {{"next larger", AttentionSite::self, 0, HeadTarget::Kind::key}};
}

std::vector<Claim> SortTask::claims() const {
  return {// One head is slower in about one seed in twelve: whole lists .77 after 200 steps.
          {.says = "whole lists", .heads = {1}, .lower = .98, .seeds = .8},
          {.says = "whole lists", .heads = {4, 8, 16}, .lower = .98},
          {.says = "looks at the next larger, best head",
           .measure = Measure::relation,
           .heads = {1},
           .lower = .85},
          {.says = "looks at the next larger, best head",
           .measure = Measure::relation,
           .heads = {4},
           .lower = .40,
           .upper = .75},
          {.says = "looks at the next larger, best head",
           .measure = Measure::relation,
           .heads = {8},
           .lower = .35,
           .upper = .60},
          {.says = "looks at the next larger, best head",
           .measure = Measure::relation,
           .heads = {16},
           .lower = .20,
           .upper = .50}};
}

void SortTask::write(Batch& batch, std::int64_t row, Random& random) const {
  std::int64_t* x = example_of(batch.inputs[0], row);
  std::int64_t* answers = example_of(batch.targets, row);
  std::int64_t* keys = example_of(batch.head_targets[0], row);
  const std::vector<std::int64_t> drawn = random.permutation(values);
  std::copy_n(drawn.begin(), length, x);
  std::vector<std::int64_t> sorted(drawn.begin(), drawn.begin() + length);
  std::sort(sorted.begin(), sorted.end());
  x[length] = separator;
  for (std::int64_t i = 0; i < length; ++i) {
    const std::int64_t value = sorted[static_cast<std::size_t>(i)];
    const std::int64_t query = length + i;
    if (i + 1 < length) x[query + 1] = value;
    answers[query] = value;
    keys[query] = std::find(x, x + length, value) - x;
  }
}

std::string SortTask::spell(std::size_t, std::int64_t id) const {
  return id == separator ? "|" : std::to_string(id);
}

}  // namespace headlab
