#include "framework/heads/knockout_study.h"

#include <algorithm>
#include <numeric>

#include <gtest/gtest.h>

#include "framework/autograd/backward.h"
#include "framework/data/offsets.h"
#include "framework/data/prev.h"
#include "framework/heads/importance.h"
#include "framework/heads/shapley.h"
#include "models/build.h"
#include "tests/heads/support.h"
#include "tests/support/errors.h"
#include "tests/support/tiny_task.h"

namespace headlab {
namespace {

std::unique_ptr<Model> fresh(std::int64_t layers, std::int64_t heads) {
  Needs needs = TinyTask().needs();
  needs.layers = layers;
  needs.heads = heads;
  auto model = build_model(needs);
  initialise(*model, 5);
  return model;
}

TEST(RandomSets, HaveAsManyHeadsInEachLayerAndNoneOfTheSetWhereOthersAreEnough) {
  const auto model = fresh(2, 6);
  const HeadList set = {{0, 1}, {0, 2}, {1, 0}};
  const std::vector<HeadList> random = random_sets_like(*model, set, 10, 1);
  ASSERT_EQ(random.size(), 10U);
  for (const HeadList& other : random) {
    ASSERT_EQ(other.size(), 3U);
    EXPECT_EQ(std::count_if(other.begin(), other.end(), [](HeadId id) { return id.layer == 0; }), 2);
    for (const HeadId id : set) EXPECT_EQ(std::count(other.begin(), other.end(), id), 0);
  }
  EXPECT_EQ(random, random_sets_like(*model, set, 10, 1));
  EXPECT_NE(random, random_sets_like(*model, set, 10, 2));
  // All five others of layer 1.
  EXPECT_EQ(random_sets_like(*model, {{1, 0}}, 10, 1).size(), 5U);
  // A whole layer has no like.
  EXPECT_TRUE(random_sets_like(*fresh(1, 1), {{0, 0}}, 10, 1).empty());
}

TEST(SetLosses, AreDoublyDissociatedInAModelOfOneHeadPerJob) {
  const OffsetsTask task;
  std::vector<PlantedHead> jobs;
  for (std::size_t r = 0; r < 8; ++r) jobs.push_back({-static_cast<std::int64_t>(r) - 1, r});
  PlantedModel model(task.needs(), jobs);
  const std::vector<HeadSet> sets = {{"a", {{0, 0}, {0, 1}}}, {"b", {{0, 6}}}};
  const std::vector<SetLoss> losses = set_losses(model, task, 0, sets, 5);
  ASSERT_EQ(losses.size(), 2U);
  EXPECT_GE(losses[0].loss.readouts[0], 0.9);
  EXPECT_GE(losses[0].loss.readouts[1], 0.9);
  EXPECT_EQ(losses[0].loss.readouts[6], 0);
  EXPECT_GE(losses[1].loss.readouts[6], 0.9);
  EXPECT_EQ(losses[1].loss.readouts[0], 0);
  EXPECT_EQ(losses[0].random.size(), 5U);
  EXPECT_EQ(losses[0].random_mean.readouts[0], 0);
  EXPECT_TRUE(losses[0].loss.matters);
  EXPECT_GT(*losses[0].p_random, 0.1);  // any two heads are as dear as these
}

TEST(PruneCurve, FallsByOneReadOutAtATime) {
  const OffsetsTask task;
  std::vector<PlantedHead> jobs;
  for (std::size_t r = 0; r < 8; ++r) jobs.push_back({-static_cast<std::int64_t>(r) - 1, r});
  jobs.push_back(jobs[0]);
  jobs.push_back(jobs[1]);
  PlantedModel model(task.needs(), jobs);
  HeadList order = all_heads(model);
  std::rotate(order.begin(), order.begin() + 8, order.end());  // the two doubles go first
  const PruneCurve curve = prune_curve(model, task, 0, order);
  ASSERT_EQ(curve.points.size(), 11U);
  EXPECT_EQ(curve.points[2].score, 1);
  EXPECT_NEAR(curve.points[3].score, 1 - (31.0 / 32) / 8, 0.01);
  EXPECT_EQ(curve.fewest, 8);
  EXPECT_EQ(curve.heads, 10);
  EXPECT_NEAR(curve.area, 0.1 * (1 + 1 + 0.5) + 0.1 * 0.5 + 0.1 * 7 * 0.45 + 0.02, 0.06);
  const std::vector<Answers> one_by_one = cumulative(model, task, 0, order);
  ASSERT_EQ(one_by_one.size(), 11U);
  EXPECT_EQ(one_by_one[2].pooled, 1);
  EXPECT_NEAR(one_by_one[3].pooled, curve.points[3].score, 1e-12);
}

TEST(KeepOne, FindsTheHeadThatAloneDoesBest) {
  const PrevTask task;
  PlantedModel model(task.needs(), {{0, 0}, {-1, 0}, {-2, 0}});
  const std::vector<KeptHead> kept = keep_one(model, task, 0);
  ASSERT_EQ(kept.size(), 1U);
  EXPECT_EQ(kept[0].head, (HeadId{0, 1}));
  EXPECT_EQ(kept[0].heads, 3);
  EXPECT_LE(kept[0].loss.accuracy, 0);
}

TEST(Shapley, AddsUpAndTreatsEqualHeadsAlike) {
  const PrevTask task;
  PlantedModel model(task.needs(), {{-1, 0}, {-1, 0}, {0, 0}});
  const Shapley exact = shapley(model, task, 0, 0, {.sequences = 32});
  EXPECT_TRUE(exact.exact);
  EXPECT_EQ(exact.evaluations, 8);
  double accuracy = 0;
  double loss = 0;
  for (const Shapley::Share& share : exact.shares) {
    accuracy += share.accuracy;
    loss += share.loss;
  }
  EXPECT_NEAR(accuracy, exact.accuracy, 1e-12);
  EXPECT_NEAR(loss, exact.loss, 1e-12);
  EXPECT_NEAR(exact.shares[0].loss, exact.shares[1].loss, 1e-12);
  EXPECT_GT(exact.shares[0].loss, 0.3);
  EXPECT_LT(exact.shares[2].loss, 0);
}

// Two heads by hand: φ_0 = ½ (v(0) − v(∅)) + ½ (v(01) − v(1)).
TEST(Shapley, OfTwoHeadsIsTheMeanOfBothOrders) {
  const TinyTask task;
  const auto model = fresh(1, 2);
  const Shapley exact = shapley(*model, task, 3, 0);
  const std::vector<HeadList> off = {{{0, 0}, {0, 1}}, {{0, 1}}, {{0, 0}}, {}};
  const KnockoutRuns v = answers_without_each(*model, task, 3, off);
  const auto worth = [&](std::size_t i) { return -v.answers[i].loss; };
  EXPECT_NEAR(exact.shares[0].loss, (worth(1) - worth(0)) / 2 + (worth(3) - worth(2)) / 2, 1e-12);
}

TEST(Shapley, OfRandomOrdersIsNearTheExactOneByItsStandardError) {
  const TinyTask task;
  const auto large = fresh(3, 6);  // 18 heads: sampled
  const Shapley sampled = shapley(*large, task, 3, 12, {.sequences = 9});
  EXPECT_FALSE(sampled.exact);
  double loss = 0;
  for (const Shapley::Share& share : sampled.shares) {
    loss += share.loss;
    EXPECT_GT(share.loss_error, 0);
  }
  EXPECT_NEAR(loss, sampled.loss, 1e-9);  // every order adds up to the whole
  EXPECT_EQ(error_of([&] { shapley(*large, task, 3, 1); }), "shapley: 1 random orders, needs at least 2");
}

TEST(Importance, IsTheSlopeOfEachExamplesOwnLossAtItsGate) {
  const TinyTask task;
  const auto model = fresh(2, 3);
  const Importance importance = head_importance(*model, task, 3, {.batch_size = 7});
  ASSERT_EQ(importance.heads.size(), 6U);
  const ModeScope mode(*model, false);
  std::vector<double> expected(6);
  std::vector<double> effect(6);
  const std::int64_t size = task.held_out_size(HeldOut::score);
  for (std::int64_t x = 0; x < size; ++x) {
    const Batch one = task.held_out(3, x, 1, HeldOut::score);
    for (std::size_t layer = 0; layer < 2; ++layer) {
      const Tensor gate(Array::full({3}, 1), true);
      const GateScope scope(*head_layers(*model)[layer], gate);
      backward(forward_loss(*model, one).loss);
      for (std::int64_t h = 0; h < 3; ++h) {
        const std::size_t i = layer * 3 + static_cast<std::size_t>(h);
        expected[i] += std::abs(gate.grad().at(h)) / static_cast<double>(size);
        effect[i] -= gate.grad().at(h) / static_cast<double>(size);
      }
    }
  }
  for (std::size_t i = 0; i < 6; ++i) {
    EXPECT_NEAR(importance.heads[i].example, expected[i], 1e-6 + 1e-5 * expected[i]);
    EXPECT_NEAR(importance.heads[i].effect, effect[i], 1e-6);
  }
}

TEST(Importance, OfTokensBoundsThatOfExamplesAndThatOfBatches) {
  const TinyTask task;
  const auto model = fresh(2, 3);
  const Importance importance = head_importance(*model, task, 3, {.batch_size = 7});
  for (const HeadImportance& head : importance.heads) {
    ASSERT_TRUE(head.token.has_value());
    EXPECT_GE(*head.token * 5 * (1 + 1e-6), head.example);
    EXPECT_GE(head.example, head.batch / importance.examples_a_batch);
    EXPECT_GE(head.example, std::abs(head.effect));
    EXPECT_GT(head.batch, 0);
  }
  // Parameters are thawed again, and have no gradient.
  for (const NamedParameter& named : model->parameters()) {
    EXPECT_TRUE(named.parameter->tensor().requires_grad());
    EXPECT_FALSE(named.parameter->tensor().has_grad());
  }
}

TEST(Importance, CanBeSeenWithinEachLayer) {
  Importance importance;
  importance.heads = {{.head = {0, 0}, .example = 3, .token = {}},
                      {.head = {0, 1}, .example = 4, .token = {}},
                      {.head = {1, 0}, .example = 0, .token = {}}};
  EXPECT_EQ(values_of(importance, ImportanceForm::example, true), (std::vector<double>{0.6, 0.8, 0}));
  EXPECT_EQ(error_of([&] { values_of(importance, ImportanceForm::token); }),
            "importance: head 0.0 is in a layer that does not show z, as tokens need");
}

// By hand: ranks of b are 2, 1, 4, 3, 6.5, 6.5, 5, so ρ = 22.5/√(28·27.5); of 21 pairs one is tied in b, 16
// agree and 4 do not, so τ_b = 12/√(21·20).
TEST(RankCorrelation, EqualsThatByHand) {
  const std::vector<double> a = {1, 2, 3, 4, 5, 6, 7};
  const std::vector<double> b = {2, 1, 4, 3, 7, 7, 5};
  EXPECT_NEAR(*spearman(a, b), 22.5 / std::sqrt(770.0), 1e-12);
  EXPECT_NEAR(*kendall(a, b), 12 / std::sqrt(420.0), 1e-12);
  EXPECT_FALSE(spearman(a, std::vector<double>(7, 2.0)));
  EXPECT_FALSE(kendall(std::vector<double>{1}, std::vector<double>{1}));
}

}  // namespace
}  // namespace headlab
