#include "framework/data/prev.h"

#include "framework/data/one_layer.h"

namespace headlab {

// As `offsets` with one read-out: 32·64 + 16·64 + 4·64² + 2·2·64 + (64 + 1)·32 = 21 792.
Needs PrevTask::needs() const {
  Needs needs = one_layer_needs(context, 1);
  needs.streams = {{"token", tokens, one_layer_embedding_std()}};
  needs.readouts = {{"t-1", tokens}};
  return needs;
}

Recipe PrevTask::recipe() const { return one_layer_recipe(150); }

std::vector<HeadTarget> PrevTask::head_targets() const {
  return {{"t-1", AttentionSite::self, 0, HeadTarget::Kind::key}};
}

std::vector<Claim> PrevTask::claims() const {
  return {{.says = "accuracy", .heads = {1, 4, 8, 16}, .lower = .99},
          {.says = "accuracy lost without the only head",
           .measure = Measure::worst_head,
           .heads = {1},
           .lower = .80},
          {.says = "accuracy lost without any one head",
           .measure = Measure::worst_head,
           .heads = {4, 8, 16},
           .upper = .05}};
}

void PrevTask::write(Batch& batch, std::int64_t row, Random& random) const {
  std::int64_t* x = example_of(batch.inputs[0], row);
  std::int64_t* answers = example_of(batch.targets, row);
  std::int64_t* keys = example_of(batch.head_targets[0], row);
  for (std::int64_t t = 0; t < context; ++t) x[t] = random.below(tokens);
  for (std::int64_t t = 1; t < context; ++t) {
    keys[t] = t - 1;
    answers[t] = x[t - 1];
  }
}

std::string PrevTask::spell(std::size_t, std::int64_t id) const { return letter(id); }

}  // namespace headlab
