#include "framework/data/induction.h"

#include "framework/data/one_layer.h"

namespace headlab {

// 32·64 tokens + 2·(4·64² attention + 64 norm) + 64 final norm + 64·32 read-out = 37 056.
Needs InductionTask::needs() const {
  Needs needs;
  needs.streams = {{"token", tokens, 0.125}};
  needs.readouts = {{"next", tokens}};
  needs.context = context;
  needs.layers = 2;
  needs.d_model = 64;
  needs.norm_bias = false;
  needs.positions = Needs::Positions::rotary;
  needs.rotary_base = 100;
  needs.weights = Needs::Weights::xavier_normal;
  needs.readout_bias = false;
  return needs;
}

Recipe InductionTask::recipe() const {
  Recipe recipe;
  recipe.batch = 32;
  recipe.steps = 600;
  recipe.learning_rate = 5e-3;
  recipe.schedule = Recipe::Schedule::constant;
  recipe.warmup_steps = 30;
  recipe.beta2 = 0.98;
  recipe.weight_decay = 0.01;
  return recipe;
}

std::vector<HeadTarget> InductionTask::head_targets() const {
  return {{"successor", AttentionSite::self, 0, HeadTarget::Kind::key},
          {"previous", AttentionSite::self, -1, HeadTarget::Kind::key}};
}

std::vector<Rung> InductionTask::ladder() const {
  return {{1, 0.871}, {2, 0.998}, {4, 0.998}, {8, 0.771}, {16, 0.149}};
}

std::vector<Claim> InductionTask::claims() const {
  return {{.says = "accuracy", .heads = {1}, .lower = .65},
          {.says = "accuracy", .heads = {4}, .lower = .98},
          {.says = "accuracy, heads of width 4", .heads = {16}, .upper = .40},
          {.says = "step at which half is right",
           .measure = Measure::half_step,
           .heads = {4},
           .lower = 175,
           .upper = 375},
          {.says = "weight on the successor",
           .measure = Measure::mass,
           .heads = {4},
           .lower = .75,
           .target = successor},
          {.says = "right without the previous-token heads",
           .measure = Measure::without_set,
           .heads = {4},
           .upper = .25,
           .target = previous,
           .threshold = .5},
          {.says = "accuracy", .heads = {1, 4}, .upper = .15, .setting = {.name = "one layer", .layers = 1}},
          {.says = "accuracy",
           .heads = {1, 4},
           .lower = .97,
           .setting = {.name = "one layer, smeared keys", .steps = 200, .layers = 1, .smeared_keys = true}},
          {.says = "accuracy, heads of width 16",
           .heads = {16},
           .lower = .98,
           .setting = {.name = "d_k 16", .head_size = 16}}};
}

void InductionTask::write(Batch& batch, std::int64_t row, Random& random) const {
  std::int64_t* x = example_of(batch.inputs[0], row);
  const std::int64_t length = shortest + random.below(longest - shortest + 1);
  const std::int64_t c = context - length;
  const std::vector<std::int64_t> order = random.permutation(tokens);
  const std::int64_t s = random.below(context - 2 * length + 1);
  for (std::int64_t t = 0; t < context; ++t) {
    x[t] = t < c ? order[static_cast<std::size_t>(t)] : x[s + t - c];
  }
  std::int64_t* answers = example_of(batch.targets, row);
  std::int64_t* successors = example_of(batch.head_targets[successor], row);
  std::int64_t* previouses = example_of(batch.head_targets[previous], row);
  for (std::int64_t t = c; t + 1 < context; ++t) {
    answers[t] = x[t + 1];
    successors[t] = s + (t - c) + 1;
    previouses[successors[t]] = successors[t] - 1;
  }
}

std::string InductionTask::spell(std::size_t, std::int64_t id) const { return letter(id); }

}  // namespace headlab
