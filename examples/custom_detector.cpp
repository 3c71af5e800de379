// How to add a detector: does a head look at the token *after* an earlier copy of the one it stands on
// (induction)? A hook reads the weights; the null is what place alone explains: the same keys asked of the
// pattern of another sequence.
#include <fmt/core.h>

#include "framework/data/induction.h"
#include "framework/heads/head_sites.h"
#include "framework/nn/hooks.h"
#include "framework/train/trainer.h"
#include "models/build.h"

using namespace headlab;

namespace {

struct Found {
  double score = 0, null = 0;
};

// Of one head: weights [B, heads, T, T], tokens [B, T].
Found detect(const Array& weights, const Array& tokens, std::int64_t head) {
  const std::int64_t examples = weights.dim(0), heads = weights.dim(1), T = weights.dim(2);
  Found sum;
  double asked = 0;
  for (std::int64_t b = 0; b < examples; ++b)
    for (std::int64_t i = 1; i < T; ++i)
      for (std::int64_t copy = 0; copy < i; ++copy) {
        if (tokens.at(b * T + copy) != tokens.at(b * T + i)) continue;
        ++asked;
        const std::int64_t place = (head * T + i) * T + copy + 1;  // in one example's weights
        sum.score += weights.at(b * heads * T * T + place);
        sum.null += weights.at((b + 1) % examples * heads * T * T + place);
      }
  return {sum.score / asked, sum.null / asked};
}

}  // namespace

int main() {
  const InductionTask task;
  const RunConfig config{.task = task.name(), .needs = task.needs(), .recipe = task.recipe(), .seed = 0};
  const std::unique_ptr<Model> model = build_model(config.needs);
  train(*model, task, config);

  const Looking evaluation(*model);  // no dropout, nothing recorded
  const Batch batch = task.held_out(config.seed, 0, 64, HeldOut::score);
  const ActivationCache seen(*model, {"blocks.*.attn.pattern"});
  model->logits(batch);
  fmt::print("share of attention on what came after an earlier copy; of another sequence's\n");
  for (const HeadId id : all_heads(*model)) {
    const Array& weights = seen[fmt::format("blocks.{}.attn.pattern", id.layer)];
    const Found found = detect(weights, batch.inputs[0], id.head);
    fmt::print("head {}  {:.3f}  {:.3f}{}\n", id.str(), found.score, found.null,
               found.score > found.null + 0.3 ? "  does look there" : "");
  }
  return 0;
}
