#include "framework/heads/prune.h"

#include <gtest/gtest.h>

#include "framework/data/prev.h"
#include "framework/data/reverse.h"
#include "models/build.h"
#include "tests/heads/support.h"
#include "tests/support/errors.h"
#include "tests/support/training.h"

namespace headlab {
namespace {

std::unique_ptr<Model> fresh(const Needs& needs, std::uint64_t seed = 5) {
  auto model = build_model(needs);
  initialise(*model, seed);
  // Biases start at 0, and what is lost with them would not show.
  for (const NamedParameter& named : model->parameters()) {
    Array& values = named.parameter->tensor().change();
    for (std::int64_t i = 0; i < values.size(); ++i)
      values.data<float>()[i] += 0.01F * static_cast<float>(i % 7);
  }
  return model;
}

// The gated model and the smaller one say the same of a batch.
void expect_same_logits(Model& model, const Task& task, const HeadList& kept, std::vector<double> gates) {
  const PrunedModel smaller = pruned(model, kept, gates);
  EXPECT_EQ(smaller.needs.parameters(), static_cast<double>([&] {
              std::int64_t count = 0;
              for (const auto& entry : smaller.state) count += entry.second.size();
              return count;
            }()));
  const auto small = build_model(smaller.needs);
  small->load_state(smaller.state);
  const std::vector<HeadId> all = all_heads(model);
  for (std::size_t h = 0; h < all.size(); ++h) {
    if (std::find(kept.begin(), kept.end(), all[h]) == kept.end()) gates[h] = 0;
  }
  const HeadGates gated(model, gates);
  const Batch batch = task.held_out(3, 0, 5);
  const Looking looking(model);
  const Looking at_small(*small);
  const Array a = model.logits(batch).value();
  const Array b = small->logits(batch).value();
  ASSERT_EQ(a.shape(), b.shape());
  for (std::int64_t i = 0; i < a.size(); ++i)
    ASSERT_NEAR(a.at(i), b.at(i), 1e-6 * std::max(1.0, std::abs(a.at(i))));
}

TEST(Prune, SaysWhatTheGatedModelSays) {
  const TinyTask task;
  Needs needs = task.needs();
  needs.layers = 2;
  needs.attention_bias = true;
  for (const Needs::Positions positions :
       {Needs::Positions::learned, Needs::Positions::rotary, Needs::Positions::relative}) {
    needs.positions = positions;
    needs.smeared_keys = positions == Needs::Positions::learned;
    const auto model = fresh(needs);
    expect_same_logits(*model, task, {{0, 1}, {1, 0}, {1, 2}}, std::vector<double>(6, 1));
    expect_same_logits(*model, task, {{0, 0}, {0, 2}}, {0.25, 1, 0.75, 1, 1, 1});  // nothing left in layer 1
    expect_same_logits(*model, task, {}, std::vector<double>(6, 1));
  }
}

TEST(Prune, TakesHeadsOutOfEveryLayerOfAnEncoderDecoder) {
  const ReverseTask task;
  Needs needs = task.needs();
  needs.layers = 2;
  const auto model = fresh(needs);
  const std::vector<double> open(all_heads(*model).size(), 1);
  expect_same_logits(*model, task, {{0, 1}, {1, 0}, {2, 2}, {3, 0}, {3, 3}, {5, 1}}, open);
}

TEST(Prune, CountsAGateThatIsSet) {
  const TinyTask task;
  const auto model = fresh(task.needs());
  const GateScope half(*head_layers(*model)[0], Tensor::of({3}, {0.5F, 1.0F, 0.0F}));
  expect_same_logits(*model, task, {{0, 0}, {0, 2}}, {1, 1, 1});
}

TEST(Prune, ASmallerModelIsAskedLikeAnyOther) {
  const TinyTask task;
  Needs needs = task.needs();
  needs.layers = 2;
  const auto model = fresh(needs);
  const PrunedModel smaller = pruned(*model, {{0, 1}, {0, 2}}, std::vector<double>(6, 1));
  const auto small = build_model(smaller.needs);
  small->load_state(smaller.state);
  EXPECT_EQ(all_heads(*small), (std::vector<HeadId>{{0, 0}, {0, 1}}));
  const std::vector<HeadList> sets = {{}, {{0, 1}}};
  const KnockoutRuns runs = answers_without_each(*small, task, 3, sets);
  EXPECT_TRUE(runs.staged);
  EXPECT_NE(runs.answers[0].loss, runs.answers[1].loss);
  const std::vector<HeadList> both = {{{0, 0}, {1, 0}, {1, 1}, {1, 2}}};
  EXPECT_NEAR(runs.answers[0].loss, answers_without_each(*model, task, 3, both).answers[0].loss, 0.5);
  // A text goes on from a cache even where a layer has no heads.
  TextCache cache;
  const Looking looking(*small);
  Batch first = task.held_out(3, 0, 1);
  const Array whole = small->logits(first).value();
  first.inputs[0] = first.inputs[0].reshape({5}).range(0, 3).reshape({1, 3});
  small->next_logits(first, cache);
  EXPECT_EQ(cache.length(), 3);
  Batch last = task.held_out(3, 0, 1);
  last.inputs[0] = last.inputs[0].reshape({5}).range(3, 5).reshape({1, 2});
  const Array rest = small->next_logits(last, cache).value();
  for (std::int64_t i = 0; i < rest.size(); ++i)
    EXPECT_EQ(rest.at(i), whole.at(whole.size() - rest.size() + i));
}

TEST(Prune, KeepsTheMostImportantHeadsRoundedUp) {
  const TinyTask task;
  Needs needs = task.needs();
  needs.layers = 2;
  const auto model = fresh(needs);
  const std::vector<double> values = {3, 1, 5, 4, 0, 2};
  EXPECT_EQ(most_important(*model, values, 0.4), (HeadList{{0, 0}, {0, 2}, {1, 0}}));
  EXPECT_EQ(most_important(*model, values, 0.5), (HeadList{{0, 0}, {0, 2}, {1, 0}}));
  EXPECT_EQ(most_important(*model, values, 0.01), (HeadList{{0, 2}}));
  EXPECT_EQ(most_important(*model, values, 1).size(), 6U);
  EXPECT_EQ(error_of([&] { most_important(*model, values, 0); }),
            "prune: a share of 0 heads, allowed: above 0, up to 1");
  EXPECT_EQ(error_of([&] { most_important(*model, {1}, 0.5); }), "prune: 1 values for 6 heads");
}

TEST(Prune, NamesALayerThatCannot) {
  const PrevTask task;
  PlantedModel model(task.needs(), {{-1, 0}, {0, 0}});
  EXPECT_EQ(error_of([&] {
              pruned(model, {{0, 0}}, {1, 1});
            }),
            "head layer: attn does not know how to go on without some of its heads");
}

TEST(LearnedGates, ShutHeadsThatDoNothingAndKeepTheOthers) {
  const TinyTask task;
  RunConfig config = config_of(task, 150);
  config.recipe.batch = 32;
  const Trained trained = train_new(task, config);
  // Head 1 is made idle: what it writes is nothing.
  auto* attention = dynamic_cast<Module*>(head_layers(*trained.model)[0]);
  for (const NamedParameter& named : attention->parameters()) {
    if (named.path != "out.weight") continue;
    Array& weight = named.parameter->tensor().change();
    for (std::int64_t row = 0; row < 12; ++row) {
      for (std::int64_t c = 4; c < 8; ++c) weight.data<float>()[row * 12 + c] = 0;
    }
  }
  const GateLearning options{.lambda = 0.02, .steps = 120, .first_batch = 150};
  const LearnedGates learned = learn_gates(*trained.model, task, 3, options);
  ASSERT_EQ(learned.gates.size(), 3U);
  EXPECT_LT(learned.gates[1], 0.5);
  EXPECT_LT(learned.gates[1], learned.gates[0]);
  EXPECT_LT(learned.gates[1], learned.gates[2]);
  EXPECT_LT(learned.open, 3);
  EXPECT_EQ(learn_gates(*trained.model, task, 3, options).gates, learned.gates);
  const LearnedGates dear = learn_gates(*trained.model, task, 3, {.lambda = 10, .steps = 120});
  EXPECT_EQ(dear.gates, (std::vector<double>{0, 0, 0}));
  EXPECT_EQ(error_of([&] { learn_gates(*trained.model, task, 3, {.lambda = -1}); }),
            "gates: λ -1 is not a number from 0 on");
}

}  // namespace
}  // namespace headlab
