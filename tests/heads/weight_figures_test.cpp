#include "framework/heads/weight_figures.h"

#include <gtest/gtest.h>

#include "framework/heads/prefix_matching.h"
#include "framework/heads/roles.h"
#include "models/build.h"
#include "tests/heads/planted.h"
#include "tests/heads/support.h"
#include "tests/support/errors.h"

namespace headlab {
namespace {

Array matrix(std::int64_t rows, std::int64_t columns, const std::vector<double>& numbers) {
  return Array::of<double>({rows, columns}, numbers);
}

/// A layer that shows these weights and nothing else.
class Bare : public Module, public HeadLayer {
 public:
  explicit Bare(std::vector<HeadWeights> heads) : HeadLayer(this), weights(std::move(heads)) {}
  std::int64_t heads() const override { return static_cast<std::int64_t>(weights.size()); }
  std::int64_t head_size() const override { return 2; }
  Module& module() override { return *this; }
  bool cross() const override { return false; }
  std::optional<HeadWeights> head_weights(std::int64_t head) override {
    return weights.at(static_cast<std::size_t>(head));
  }
  std::vector<HeadWeights> weights;
};

class BareModel : public Model {
 public:
  explicit BareModel(std::vector<std::vector<HeadWeights>> all) : Model(Needs{}), layers(this, "layers") {
    for (auto& heads : all) layers.add(std::move(heads));
  }
  Tensor logits(const Batch&) override { return {}; }
  std::optional<TokenMaps> token_maps() override { return maps; }
  ModuleList<Bare> layers;
  std::optional<TokenMaps> maps;
};

TEST(WeightFigures, AreTheRanksOfTheProductsByHand) {
  // W_QK = diag(3, 1, 0), W_OV = 2·ones(3, 3): one singular value, 6.
  HeadWeights w{matrix(3, 2, {3, 0, 0, 1, 0, 0}), matrix(3, 2, {1, 0, 0, 1, 0, 0}), matrix(3, 1, {2, 2, 2}),
                matrix(1, 3, {1, 1, 1})};
  BareModel model({{w}});
  const WeightFigures f = *weight_figures(model, {0, 0});
  EXPECT_NEAR(f.qk_stable_rank, 10.0 / 9, 1e-12);
  EXPECT_NEAR(f.qk_effective_rank, std::exp(-0.75 * std::log(0.75) - 0.25 * std::log(0.25)), 1e-12);
  EXPECT_NEAR(f.ov_stable_rank, 1, 1e-12);
  EXPECT_NEAR(f.ov_effective_rank, 1, 1e-12);
  EXPECT_FALSE(f.copying);
}

TEST(WeightFigures, CopyingIsTheShareOfPositiveEigenvalues) {
  // W_E = W_U = 1, so that the eigenvalues are those of W_V W_O = diag(3, −1).
  const HeadWeights w{matrix(2, 1, {1, 0}), matrix(2, 1, {1, 0}), matrix(2, 2, {3, 0, 0, 1}),
                      matrix(2, 2, {1, 0, 0, -1})};
  const Model::TokenMaps maps{matrix(2, 2, {1, 0, 0, 1}), matrix(2, 2, {1, 0, 0, 1})};
  EXPECT_NEAR(copying_score(w, maps), 0.5, 1e-12);
  // A quarter turn has the eigenvalues ±i: neither for nor against.
  HeadWeights turn = w;
  turn.v = matrix(2, 2, {0, 1, -1, 0});
  turn.o = matrix(2, 2, {1, 0, 0, 1});
  EXPECT_NEAR(copying_score(turn, maps), 0, 1e-12);
  turn.o = matrix(2, 2, {0, 0, 0, 0});
  EXPECT_EQ(copying_score(turn, maps), 0);
  BareModel model({{w}});
  EXPECT_TRUE(copying_scores(model).empty());
  model.maps = maps;
  EXPECT_NEAR(*copying_scores(model)[0], 0.5, 1e-12);
  EXPECT_NEAR(*all_weight_figures(model)[0]->copying, 0.5, 1e-12);
}

TEST(WeightFigures, CompositionIsTheNormOfTheProductByHand) {
  // The first head writes channel 1 alone; the second's keys read channel 1, its queries and values
  // channel 2.
  const HeadWeights first{matrix(3, 1, {1, 0, 0}), matrix(3, 1, {1, 0, 0}), matrix(3, 1, {0, 0, 2}),
                          matrix(1, 3, {0, 5, 0})};
  const HeadWeights second{matrix(3, 1, {0, 0, 1}), matrix(3, 1, {0, 7, 0}), matrix(3, 1, {0, 0, 1}),
                           matrix(1, 3, {1, 0, 0})};
  BareModel model({{first}, {second}});
  const std::vector<Composition> pairs = compositions(model);
  ASSERT_EQ(pairs.size(), 1U);
  EXPECT_EQ(pairs[0].from, (HeadId{0, 0}));
  EXPECT_EQ(pairs[0].to, (HeadId{1, 0}));
  // K is 1, Q and V are 0, less the same means over random directions of three channels (0.5 = E|cos|).
  EXPECT_NEAR(pairs[0].key->above, 0.5, 0.15);
  EXPECT_NEAR(pairs[0].query->above, -0.5, 0.15);
  EXPECT_NEAR(pairs[0].value->above, -0.5, 0.15);
  EXPECT_LE(pairs[0].key->above + 0.5 - 0.15, 1);
  EXPECT_FALSE(pairs[0].query->more_than_chance());
}

TEST(HeadWeights, OfGroupedHeadsShareKeysAndValues) {
  MultiHeadAttention attn({.d_model = 6, .heads = 4, .kv_heads = 2, .d_k = 3, .d_v = 2});
  initialise(attn, 1);
  const HeadWeights a = *attn.head_weights(2);
  const HeadWeights b = *attn.head_weights(3);
  EXPECT_EQ(a.q.shape(), (Shape{6, 3}));
  EXPECT_EQ(a.o.shape(), (Shape{2, 6}));
  const Array& qkv = attn.qkv_weight->tensor().value();
  EXPECT_EQ(b.q.at(5 * 3 + 1), qkv.at((3 * 3 + 1) * 6 + 5));
  for (std::int64_t i = 0; i < a.k.size(); ++i) EXPECT_EQ(a.k.at(i), b.k.at(i));
  EXPECT_EQ(a.k.at(4 * 3 + 2), qkv.at((12 + 3 + 2) * 6 + 4));
  EXPECT_EQ(a.v.at(4 * 2 + 1), qkv.at((12 + 6 + 2 + 1) * 6 + 4));
  EXPECT_EQ(b.o.at(1 * 6 + 5), (*attn.out)->weight.tensor().value().at(5 * 8 + 3 * 2 + 1));
  EXPECT_EQ(error_of([&] { attn.head_weights(4); }), "attention: has no head 4: there are 4");
  MultiHeadAttention bare({.d_model = 6, .heads = 2, .out_proj = false});
  EXPECT_FALSE(bare.head_weights(0));
}

TEST(PrefixMatching, RepeatsDistinctWordsFourTimes) {
  const PlantTask task;
  const PrefixPlan plan = prefix_plan(task, task.needs());
  EXPECT_EQ(plan.start, 0);
  EXPECT_EQ(plan.distinct, 5);  // ⌊21/4⌋
  const Batch batch = prefix_batch(task, task.needs(), plan, 3, 1, true);
  EXPECT_EQ(batch.inputs[0].shape(), (Shape{3, 20}));
  const std::int64_t* tokens = example_of(batch.inputs[0], 2);
  for (std::int64_t i = 0; i < 20; ++i) {
    EXPECT_NE(tokens[i], 1);  // a delimiter
    for (std::int64_t j = 0; j < 20; ++j) EXPECT_EQ(tokens[i] == tokens[j], i % 5 == j % 5);
  }
  Needs small = task.needs();
  small.context = 16;
  EXPECT_EQ(prefix_plan(task, small).absent, "a context of 16 holds 3 tokens 4 times, and 4 are needed");
  small.context = 17;
  EXPECT_EQ(prefix_plan(task, small).distinct, 4);
  small.streams[0].vocabulary = 4;
  EXPECT_EQ(prefix_plan(task, small).absent, "there are 3 different tokens, and 4 are needed");
  small.architecture = Architecture::encoder_decoder;
  EXPECT_FALSE(prefix_plan(task, small).absent.empty());
}

TEST(PrefixMatching, OfAHeadAtAFixedOffsetIsNoInduction) {
  // −4 is where the token stands that followed the copy before: r − 1 places back, whatever stands there.
  const PlantTask task;
  PlantedModel model(task.needs(), {{-4, 0}, {-1, 0}});
  const Looking looking(model);
  const auto found = prefix_matching(model, task, prefix_plan(task, task.needs()), 1);
  EXPECT_NEAR(found[0]->score, 1, 1e-6);
  EXPECT_EQ(found[1]->score, 0);
  ASSERT_EQ(found[0]->shuffled.size(), 40U);
  for (const double shuffled : found[0]->shuffled) EXPECT_NEAR(shuffled, 1, 1e-6);  // so the null is as high
}

TEST(RoleFigures, AreWhatTheirDefinitionsSay) {
  std::vector<double> draws;
  for (int i = 1; i <= 2000; ++i) draws.push_back(i);
  const NullFigures null = null_figures(draws);
  EXPECT_EQ(null.median, 1000.5);
  EXPECT_EQ(null.threshold, 1999);  // 1998 of 2000 are 99.9 %: more than that is above this one
  EXPECT_EQ(error_of([] { null_figures({}); }), "role: there is no null to compare with");
  EXPECT_EQ(specialisation_of({0, 0.7, 0}), 1);
  EXPECT_NEAR(specialisation_of({0.5, 0.5, 0, 0}), 0.5, 1e-12);
  EXPECT_NEAR(specialisation_of({0.3, 0.3, 0.3}), 0, 1e-12);
  EXPECT_EQ(specialisation_of({0, 0}), 0);
  EXPECT_EQ(specialisation_of({0.2}), 1);
}

/// Logits that are right, with weight 3, from the middle of the sequence on.
class LateModel : public Model {
 public:
  LateModel() : Model(PlantTask().needs()) {}
  Tensor logits(const Batch& batch) override {
    Array logits = Array::zeros({batch.size(), needs().context, needs().logits()});
    for (std::int64_t i = 0; i < batch.targets.size(); ++i) {
      if (i % needs().context < 11) continue;
      logits.data<float>()[i * needs().logits() + batch.targets.data<std::int64_t>()[i]] = 3;
    }
    return Tensor(logits);
  }
};

TEST(InContext, IsTheLossOfTheLastTenthLessThatOfTheSecond) {
  LateModel model;
  const double early = std::log(19);
  const double late = std::log(18 + std::exp(3)) - 3;
  EXPECT_NEAR(*in_context_score(model, PlantTask(), 0), late - early, 1e-6);
}

TEST(UntrainedHeads, AreAsManyAsAskedForAndSorted) {
  Needs needs = PlantTask().needs();
  const UntrainedHeads heads = untrained_heads(build_model, needs, PlantTask(), 1, 10);
  EXPECT_EQ(heads.models, 3);
  const UntrainedHeads::Site& site = heads.sites.at(AttentionSite::self);
  EXPECT_EQ(site.sink.size(), 12U);
  EXPECT_EQ(site.copying.size(), 12U);
  EXPECT_TRUE(std::is_sorted(site.uniform.begin(), site.uniform.end()));
  EXPECT_GT(site.uniform.back(), 0.8);
  EXPECT_EQ(error_of([&] { untrained_heads({}, needs, PlantTask(), 1); }),
            "untrained heads: there is no builder of models");
}

}  // namespace
}  // namespace headlab
