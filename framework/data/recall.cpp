#include "framework/data/recall.h"

#include <fmt/format.h>

#include "framework/data/induction.h"

namespace headlab {

Needs RecallTask::needs() const {
  Needs needs = InductionTask().needs();
  needs.streams = {{"token", tokens, 0.125}};
  needs.readouts = {{"value", tokens}};
  needs.context = context;
  return needs;
}

Recipe RecallTask::recipe() const {
  Recipe recipe = InductionTask().recipe();
  recipe.steps = 400;
  return recipe;
}

std::vector<HeadTarget> RecallTask::head_targets() const {
  return {{"value", AttentionSite::self, 0, HeadTarget::Kind::key},
          {"previous", AttentionSite::self, -1, HeadTarget::Kind::key}};
}

std::vector<Rung> RecallTask::ladder() const { return {{1, 0.996}, {4, 0.998}, {8, 0.990}, {16, 0.551}}; }

std::vector<Claim> RecallTask::claims() const {
  return {{.says = "accuracy", .heads = {1, 4, 8}, .lower = .95},
          {.says = "looks at the value, best head",
           .measure = Measure::relation,
           .heads = {1, 4, 8},
           .lower = .95,
           .target = value},
          {.says = "right without the previous-token heads",
           .measure = Measure::without_set,
           .heads = {1, 4},
           .upper = .30,
           .target = previous,
           .threshold = .5}};
}

void RecallTask::write(Batch& batch, std::int64_t row, Random& random) const {
  std::int64_t* x = example_of(batch.inputs[0], row);
  std::int64_t* answers = example_of(batch.targets, row);
  std::int64_t* values_at = example_of(batch.head_targets[value], row);
  std::int64_t* previous_at = example_of(batch.head_targets[previous], row);
  const std::int64_t pairs = fewest + random.below(most - fewest + 1);
  const std::vector<std::int64_t> key = random.permutation(keys);
  const std::vector<std::int64_t> value_of = random.permutation(values);
  for (std::int64_t i = 0; i < pairs; ++i) {
    x[2 * i] = key[static_cast<std::size_t>(i)];
    x[2 * i + 1] = keys + value_of[static_cast<std::size_t>(i)];
    previous_at[2 * i + 1] = 2 * i;
  }
  std::vector<std::int64_t> order;
  for (std::int64_t t = 2 * pairs; t < context; ++t) {
    if (order.empty()) order = random.permutation(pairs);
    const std::int64_t asked = order.back();
    order.pop_back();
    x[t] = x[2 * asked];
    values_at[t] = 2 * asked + 1;
    answers[t] = x[values_at[t]];
  }
}

std::string RecallTask::spell(std::size_t, std::int64_t id) const {
  return id < keys ? fmt::format("{}", static_cast<char>('a' + id)) : fmt::format("{}", id - keys);
}

}  // namespace headlab
