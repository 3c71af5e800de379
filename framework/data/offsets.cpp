#include "framework/data/offsets.h"

#include "framework/data/one_layer.h"

namespace headlab {

// 32·64 tokens + 16·64 positions + 4·64² attention + 2·2·64 norms + (64 + 1)·8·32 read-outs = 36 352.
Needs OffsetsTask::needs() const {
  Needs needs = one_layer_needs(context, 3);
  needs.heads = 8;
  needs.streams = {{"token", tokens, one_layer_embedding_std()}};
  for (const HeadTarget& target : head_targets()) needs.readouts.push_back({target.name, tokens});
  return needs;
}

Recipe OffsetsTask::recipe() const { return one_layer_recipe(600); }

std::vector<HeadTarget> OffsetsTask::head_targets() const {
  std::vector<HeadTarget> targets;
  for (int i = 0; i < offsets; ++i) {
    targets.push_back({"t-" + std::to_string(i + 1), AttentionSite::self, i, HeadTarget::Kind::key});
  }
  return targets;
}

std::vector<Rung> OffsetsTask::ladder() const {
  return {{1, 0.209}, {2, 0.437}, {4, 0.819}, {8, 1.0}, {16, 1.0}};
}

std::vector<Claim> OffsetsTask::claims() const {
  return {
      {.says = "accuracy", .heads = {1}, .lower = .15, .upper = .26},
      {.says = "accuracy", .heads = {2}, .lower = .37, .upper = .50},
      {.says = "accuracy", .heads = {4}, .lower = .68, .upper = .92},
      {.says = "accuracy", .heads = {8, 16}, .lower = .97},
      {.says = "all eight right at one position", .measure = Measure::position, .heads = {1}, .upper = .02},
      {.says = "all eight right at one position", .measure = Measure::position, .heads = {4}, .upper = .60},
      {.says = "all eight right at one position", .measure = Measure::position, .heads = {8}, .lower = .90},
      {.says = "offsets that own a clean head", .measure = Measure::cover, .heads = {1, 2}, .upper = 1},
      {.says = "offsets that own a clean head", .measure = Measure::cover, .heads = {8}, .lower = 5},
      {.says = "offsets that own a clean head", .measure = Measure::cover, .heads = {16}, .lower = 7},
      {.says = "different offsets of the heads",
       .measure = Measure::distinct_offsets,
       .heads = {8},
       .lower = 7}};
}

void OffsetsTask::write(Batch& batch, std::int64_t row, Random& random) const {
  std::int64_t* x = example_of(batch.inputs[0], row);
  std::int64_t* answers = example_of(batch.targets, row);
  for (std::int64_t t = 0; t < context; ++t) x[t] = random.below(tokens);
  for (std::int64_t i = 0; i < offsets; ++i) {
    std::int64_t* keys = example_of(batch.head_targets[static_cast<std::size_t>(i)], row);
    for (std::int64_t t = offsets; t < context; ++t) {
      keys[t] = t - i - 1;
      answers[t * offsets + i] = x[keys[t]];
    }
  }
}

std::string OffsetsTask::spell(std::size_t, std::int64_t id) const { return letter(id); }

}  // namespace headlab
