#include "framework/heads/analyse.h"

#include <gtest/gtest.h>

#include "framework/core/parallel.h"
#include "framework/data/copy.h"
#include "framework/data/induction.h"
#include "framework/data/offsets.h"
#include "framework/data/prev.h"
#include "framework/data/roles.h"
#include "framework/heads/attention_maps.h"
#include "framework/heads/example_map.h"
#include "models/build.h"
#include "tests/heads/support.h"
#include "tests/support/errors.h"

namespace headlab {
namespace {

TEST(AnalyseHeads, FindsTheJobOfEachPlantedHead) {
  const OffsetsTask task;
  PlantedModel model(task.needs(), {{-3, 2}, {-1, 0}, {-1, 0}, {-9, 0}, {0, 0, true}});
  const HeadAnalysis a = analyse_heads(model, task, 0);
  ASSERT_EQ(a.heads.size(), 5U);
  EXPECT_EQ(a.heads[0].layer, "attn");
  EXPECT_EQ(a.heads[0].site, AttentionSite::self);
  EXPECT_EQ(a.heads[0].pattern.queries, 512 * 8);
  EXPECT_EQ(a.heads[0].best_offset, -3);
  EXPECT_EQ(a.heads[0].best_offset_share, 1);
  EXPECT_TRUE(a.heads[0].positional);
  EXPECT_EQ(a.heads[0].clean, 2U);
  EXPECT_EQ(a.heads[1].clean, 0U);
  EXPECT_EQ(a.heads[2].clean, 0U);
  EXPECT_FALSE(a.heads[3].clean);  // looks where no answer is
  EXPECT_FALSE(a.heads[4].clean);
  EXPECT_NEAR(a.heads[4].pattern.normalised_entropy, 1, 1e-6);
  EXPECT_EQ(a.heads[1].targets[0].mass, 1);
  EXPECT_EQ(a.heads[1].targets[0].relation, 1);
  EXPECT_EQ(a.heads[1].targets[1].mass, 0);

  EXPECT_EQ(a.clean_heads, 3);
  EXPECT_EQ(a.cover, 2);
  EXPECT_EQ(a.distinct_offsets, 4);
  EXPECT_NEAR(a.normalised_entropy, 0.2, 1e-6);
  EXPECT_EQ(a.targets[0].clean_heads, 2);
  EXPECT_EQ(a.targets[0].baseline_offset, -1);
  EXPECT_EQ(a.targets[0].baseline, 1);
  EXPECT_FALSE(a.targets[0].syntactic(a.heads[1].targets[0]));
  EXPECT_DOUBLE_EQ(a.targets[0].mean_relation, 2.0 / 5);
  EXPECT_EQ(a.targets[0].best_relation, 1);
  EXPECT_NEAR(a.targets[3].mean_strength, a.heads[4].targets[3].mass / 5, 1e-12);
  EXPECT_EQ(a.layers[0].coverage, 2);
  EXPECT_EQ(a.layers[0].redundancy, 1.5);
  EXPECT_GT(*a.layers[0].diversity, 0.5);
}

TEST(AnalyseHeads, GivesEachRoleToOneHead) {
  const RolesTask task;
  PlantedModel model(task.needs(), {{-24, 1}, {0, 0, true}, {-1, 0}, {0, 3}});
  const HeadAnalysis a = analyse_heads(model, task, 0);
  EXPECT_EQ(a.targets[RolesTask::prev].head, 2U);
  EXPECT_EQ(a.targets[RolesTask::first].head, 0U);
  EXPECT_EQ(a.targets[RolesTask::maj].head, 1U);
  EXPECT_EQ(a.heads[1].clean, std::size_t{RolesTask::maj});
  EXPECT_TRUE(a.heads[0].sink);
  EXPECT_FALSE(a.heads[0].positional);  // the same key is never at the same offset
  EXPECT_LT(a.targets[RolesTask::succ].baseline, 0.2);
  EXPECT_EQ(a.cover, 3);
}

TEST(AnalyseHeads, AnEvenHeadWithAnotherJobIsNotTheCountingHead) {
  const RolesTask task;
  PlantedModel model(task.needs(), {{0, 0, true}});
  const HeadAnalysis a = analyse_heads(model, task, 0);
  EXPECT_EQ(a.targets[RolesTask::prev].head, 0U);  // the only one there is
  EXPECT_FALSE(a.targets[RolesTask::maj].head);
  EXPECT_EQ(a.distinct_owners, 1);
}

TEST(AnalyseHeads, MeasuresATargetWhereItIsLabelledNotWhereAnswersAreScored) {
  // What came before is asked at the earlier occurrence, the answer is given at the later one.
  const InductionTask task;
  PlantedModel model(task.needs(), {{-1, 0}});
  const HeadAnalysis a = analyse_heads(model, task, 0);
  const TargetScore& previous = a.heads[0].targets[InductionTask::previous];
  EXPECT_EQ(previous.queries, a.heads[0].targets[InductionTask::successor].queries);
  EXPECT_EQ(previous.queries, a.heads[0].pattern.queries);
  EXPECT_EQ(previous.mass, 1);
  EXPECT_EQ(a.heads[0].clean, std::size_t{InductionTask::previous});
}

TEST(AnalyseHeads, LooksAtEachSiteOfAnEncoderDecoder) {
  const CopyTask task;
  Needs needs = task.needs();
  needs.heads = 2;
  const std::unique_ptr<Model> model = build_model(needs);
  initialise(*model, 5);
  const HeadAnalysis a = analyse_heads(*model, task, 0, 200);
  ASSERT_EQ(a.heads.size(), 6U);
  EXPECT_EQ(a.heads[0].site, AttentionSite::encoder);
  EXPECT_EQ(a.heads[2].site, AttentionSite::self);
  EXPECT_EQ(a.heads[4].site, AttentionSite::cross);
  EXPECT_EQ(a.heads[0].targets[0].queries, 0);
  EXPECT_GT(a.heads[4].targets[0].queries, 512 * 6);
  EXPECT_EQ(a.targets[0].baseline_offset, 0);
  EXPECT_EQ(a.targets[0].baseline, 1);
  EXPECT_EQ(a.targets[0].queries, a.heads[4].targets[0].queries);
  // An untrained head spreads over 7 … 17 real keys.
  EXPECT_GT(a.heads[4].pattern.normalised_entropy, 0.5);
  EXPECT_LE(a.heads[4].pattern.normalised_entropy, 1);
  EXPECT_LT(a.heads[4].targets[0].mass, 0.4);
  EXPECT_TRUE(model->training());
}

TEST(AnalyseHeads, HasTheSameBitsForAnyNumberOfThreads) {
  const PrevTask task;
  const std::unique_ptr<Model> model = build_model(task.needs());
  initialise(*model, 1);
  const auto entropy = [&](int threads, std::int64_t batch) {
    set_threads(threads);
    const double result = analyse_heads(*model, task, 0, batch).normalised_entropy;
    set_threads(0);
    return result;
  };
  EXPECT_EQ(entropy(1, 64), entropy(3, 64));
  EXPECT_NEAR(entropy(1, 64), entropy(1, 100), 1e-13);
  EXPECT_EQ(error_of([&] { analyse_heads(*model, task, 0, 0); }),
            "analyse_heads: a batch size of 0, needs at least 1");
}

TEST(AnalyseHeads, NamesALayerWithoutTelemetry) {
  const PrevTask task;
  PlantedModel model(task.needs(), {{-1, 0}, {0, 0}});
  model.attn->shows_pattern = false;
  EXPECT_FALSE(analyse_heads(model, task, 0).layers[0].diversity.has_value());
  model.attn->gives_telemetry = false;
  EXPECT_EQ(error_of([&] { analyse_heads(model, task, 0); }), "heads: layer attn gives no telemetry");
}

TEST(ExampleMap, HoldsOneHeadsAttentionWithLabels) {
  const PrevTask task;
  PlantedModel model(task.needs(), {{-2, 0}, {-1, 0}});
  const ExampleMap map = example_map(model, task, 0, {0, 1}, 7);
  EXPECT_EQ(map.layer, "attn");
  EXPECT_EQ(map.weights.shape(), (Shape{16, 16}));
  EXPECT_EQ(map.weights.at(5 * 16 + 4), 1);
  EXPECT_EQ(map.queries, task.labels(task.held_out(0, 7, 1), 0));
  EXPECT_EQ(map.keys, map.queries);
  ASSERT_EQ(map.targets.size(), 1U);
  EXPECT_EQ(map.targets[0].name, "t-1");
  EXPECT_EQ(map.targets[0].keys[5], 4);
  EXPECT_FALSE(model.attn->sites.pattern.active());
  EXPECT_EQ(error_of([&] {
              example_map(model, task, 0, {0, 1}, 1024);
            }),
            "example: 1024 is not in 0 to 1023 of the held-out set");
}

TEST(ExampleMap, OfCrossAttentionHasTheSourceAsKeys) {
  const CopyTask task;
  const std::unique_ptr<Model> model = build_model(task.needs());
  initialise(*model, 5);
  const ExampleMap map = example_map(*model, task, 0, {2, 1}, 0);
  const Batch batch = task.held_out(0, 0, 1);
  EXPECT_EQ(map.site, AttentionSite::cross);
  EXPECT_EQ(map.queries, task.labels(batch, 0));
  EXPECT_EQ(map.keys, task.labels(batch, 0, true));
}

TEST(AttentionMaps, ShowEachHeadOnTheExamplesThatAreScored) {
  const OffsetsTask task;
  PlantedModel model(task.needs(), {{-3, 2}, {0, 0, true}});
  const std::vector<ExampleMaps> maps = attention_maps(model, task, 0, {.examples = 3});
  ASSERT_EQ(maps.size(), 3U);
  EXPECT_EQ(maps[0].example, 512);
  ASSERT_EQ(maps[2].layers.size(), 1U);
  const LayerMaps& layer = maps[2].layers[0];
  EXPECT_EQ(layer.weights.shape(), (Shape{2, 16, 16}));
  EXPECT_EQ(layer.queries, task.labels(task.held_out(0, 514, 1), 0));
  const auto* weights = layer.weights.data<std::uint8_t>();
  EXPECT_EQ(weights[9 * 16 + 6], 255);
  EXPECT_EQ(weights[9 * 16 + 7], 0);
  EXPECT_EQ(weights[256 + 3 * 16 + 1], 64);  // a quarter of 255, rounded
}

TEST(AttentionMaps, KeepToTheirSize) {
  const OffsetsTask task;
  PlantedModel model(task.needs(), {{-3, 2}});
  const std::vector<ExampleMaps> maps =
      attention_maps(model, task, 0, {.examples = 8, .positions = 5, .bytes = 60});
  ASSERT_EQ(maps.size(), 2U);
  EXPECT_EQ(maps[0].layers[0].weights.shape(), (Shape{1, 5, 5}));
  EXPECT_EQ(maps[0].layers[0].keys.size(), 5U);
  EXPECT_EQ(attention_maps(model, task, 0, {.bytes = 1}).size(), 1U);
  EXPECT_EQ(error_of([&] { attention_maps(model, task, 0, {.examples = 0}); }),
            "attention_maps: examples is 0 (allowed: from 1)");
}

}  // namespace
}  // namespace headlab
