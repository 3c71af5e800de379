#include "framework/heads/specialisation.h"

#include <gtest/gtest.h>

#include "framework/data/offsets.h"
#include "tests/heads/support.h"
#include "tests/support/errors.h"

namespace headlab {
namespace {

// Three heads over two keys, one query that counts.
PatternDistances three_heads() {
  const Array pattern = Array::of<float>({1, 3, 2, 2}, {1, 0, 1, 0, /**/ 1, 0, 0, 1, /**/ 1, 0, .5F, .5F});
  PatternDistances distances;
  distances.add(pattern, Mask::causal(), Array());
  return distances;
}

double h(double p) { return -p * std::log(p) - (1 - p) * std::log(1 - p); }

TEST(PatternDistances, AreTheRootOfTheSmoothedJensenShannonDivergence) {
  const PatternDistances d = three_heads();
  const double p = 0.9995;  // 0.999 · 1 + 0.001/2
  EXPECT_NEAR(d.between(0, 1), std::sqrt(h(0.5) - h(p)), 1e-12);
  EXPECT_NEAR(d.between(0, 2), std::sqrt(h((p + 0.5) / 2) - h(p) / 2 - h(0.5) / 2), 1e-12);
  EXPECT_EQ(d.between(0, 0), 0);
  EXPECT_EQ(d.between(1, 0), d.between(0, 1));
  EXPECT_LT(d.between(0, 1), std::sqrt(std::log(2)));
  EXPECT_NEAR(d.diversity(), (d.between(0, 1) + d.between(0, 2) + d.between(1, 2)) / 3, 1e-15);
}

TEST(PatternDistances, OfEqualHeadsAreZero) {
  Array pattern = Array::full({2, 2, 3, 3}, 0.25);
  PatternDistances d;
  d.add(pattern, Mask(), Array());
  EXPECT_EQ(d.between(0, 1), 0);
  EXPECT_EQ(d.diversity(), 0);
}

TEST(PatternDistances, OfOneHeadAreNone) {
  PatternDistances d;
  EXPECT_EQ(d.diversity(), 0);
  d.add(one_hot({0, 1}), Mask::causal(), Array());
  EXPECT_EQ(d.diversity(), 0);
  EXPECT_EQ(error_of([&] { d.between(0, 1); }), "PatternDistances: heads 0 and 1 of 1");
}

TEST(PatternDistances, NameWhatDoesNotFit) {
  PatternDistances d;
  EXPECT_EQ(error_of([&] {
              d.add(Array::zeros({2, 3}), Mask(), Array());
            }),
            "PatternDistances: needs a pattern f32 [B, heads, n_q, n_k], not f32 [2, 3]");
  EXPECT_EQ(error_of([&] {
              d.add(one_hot({0, 1}), Mask(), Array::zeros({1, 3}, DType::u8));
            }),
            "PatternDistances: flags of queries u8 [1, 3] do not fit patterns of [1, 1, 2, 2]");
  d.add(one_hot({0, 1}), Mask(), Array());
  EXPECT_EQ(error_of([&] {
              d.add(Array::zeros({1, 2, 3, 3}), Mask(), Array());
            }),
            "PatternDistances: 2 heads do not fit earlier patterns of 1 heads");
}

TEST(LayerDiversity, IsOfTheFirstSequencesAndPutsNothingOnTheLayer) {
  const OffsetsTask task;
  PlantedModel model(task.needs(), {{-3, 2}, {-1, 0}, {-1, 0}});
  const auto diversity = layer_diversity(model, task, 0);
  ASSERT_EQ(diversity.size(), 1U);
  // Two of three pairs look at different keys wherever an answer is scored.
  const double p = 0.9995;
  EXPECT_GT(*diversity[0], 2.0 / 3 * std::sqrt(h(0.5) - h(p)));
  EXPECT_LT(*diversity[0], 2.0 / 3 * std::sqrt(std::log(2)));
  EXPECT_EQ(model.batches, (std::vector<std::int64_t>{64, 64, 64, 64}));
  EXPECT_FALSE(model.attn->sites.pattern.active());
}

TEST(LayerDiversity, OfOneHeadIsNoneAndOfALayerThatShowsNoPatternAbsent) {
  const OffsetsTask task;
  PlantedModel lone(task.needs(), {{-3, 2}});
  EXPECT_EQ(layer_diversity(lone, task, 0)[0], 0.0);
  EXPECT_TRUE(lone.batches.empty());
  PlantedModel shy(task.needs(), {{-3, 2}, {-1, 0}});
  shy.attn->shows_pattern = false;
  EXPECT_FALSE(layer_diversity(shy, task, 0)[0].has_value());
}

}  // namespace
}  // namespace headlab
