#include "framework/data/ask.h"

#include "framework/data/one_layer.h"

namespace headlab {

// 32·64 tokens + 8·64 questions + 16·64 relative keys + 4·64² attention + 2·2·64 norms + (64 + 1)·32 read-out
// = 22 304.
Needs AskTask::needs() const {
  Needs needs = one_layer_needs(context, 4);  // of the deviation of relative keys
  needs.positions = Needs::Positions::relative;
  needs.streams = {{"token", tokens, one_layer_embedding_std()},
                   {"question", offsets, one_layer_embedding_std()}};
  needs.readouts = {{"asked", tokens}};
  return needs;
}

Recipe AskTask::recipe() const { return one_layer_recipe(200); }

std::vector<HeadTarget> AskTask::head_targets() const {
  return {{"asked", AttentionSite::self, 0, HeadTarget::Kind::key}};
}

std::vector<Claim> AskTask::claims() const {
  return {{.says = "accuracy", .heads = {1, 8, 16}, .lower = .99}};
}

void AskTask::write(Batch& batch, std::int64_t row, Random& random) const {
  std::int64_t* x = example_of(batch.inputs[0], row);
  std::int64_t* question = example_of(batch.inputs[1], row);
  std::int64_t* answers = example_of(batch.targets, row);
  std::int64_t* keys = example_of(batch.head_targets[0], row);
  for (std::int64_t t = 0; t < context; ++t) {
    x[t] = random.below(tokens);
    question[t] = random.below(offsets);
    if (t < offsets) continue;
    keys[t] = t - question[t] - 1;
    answers[t] = x[keys[t]];
  }
}

std::string AskTask::spell(std::size_t stream, std::int64_t id) const {
  return stream == 0 ? letter(id) : std::to_string(id + 1);
}

}  // namespace headlab
