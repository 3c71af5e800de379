#include "framework/heads/target_score.h"

#include <gtest/gtest.h>

#include "tests/heads/support.h"

namespace headlab {
namespace {

constexpr std::int64_t no = unscored;

TargetScore score_of(const Array& pattern, const std::vector<std::int64_t>& keys,
                     HeadTarget::Kind kind = HeadTarget::Kind::key) {
  TelemetryOptions options;
  options.labels = Array::of<std::int64_t>({1, 1, std::ssize(keys)}, keys);
  return target_score(telemetry_of(pattern, Mask::causal(), options).heads[0].labels[0], kind);
}

TEST(TargetScore, MassIsTheMeanWeightOfTheLabelledKeys) {
  const Array pattern =
      one_head({{1, 0, 0, 0}, {.25F, .75F, 0, 0}, {.5F, .5F, 0, 0}, {.125F, .125F, .5F, .25F}});
  const TargetScore s = score_of(pattern, {no, 0, 1, 2});
  EXPECT_EQ(s.queries, 3);
  EXPECT_DOUBLE_EQ(s.mass, (.25 + .5 + .5) / 3);
  EXPECT_DOUBLE_EQ(s.relation, 1.0 / 3);  // query 2 is a tie, which goes to key 0
  EXPECT_FALSE(is_clean(s, HeadTarget::Kind::key));
}

TEST(TargetScore, AQueryWithOneKeyDoesNotCount) { EXPECT_EQ(score_of(one_hot({0, 0}), {0, 0}).queries, 1); }

TEST(LabelOffsets, TheBaselineIsTheMostFrequentOffset) {
  LabelOffsets offsets;
  offsets.add(Array::of<std::int64_t>({1, 5}, {no, 0, 0, 1, 3}), 5);
  EXPECT_EQ(offsets.best(), -2);  // −1, −2, −2, −1: the lower of two that are equally frequent
  EXPECT_EQ(offsets.share(-2), 0.5);
  EXPECT_EQ(offsets.share(0), 0);
  EXPECT_EQ(offsets.share(-77), 0);
  offsets.add(Array::of<std::int64_t>({2, 2}, {0, no, 0, 0}), 2);
  EXPECT_EQ(offsets.best(), -1);
  EXPECT_EQ(offsets.share(-1), 3.0 / 7);
}

TEST(LabelOffsets, AreCountedWithTheLastQueryAlignedWithTheLastKey) {
  LabelOffsets offsets;
  offsets.add(Array::of<std::int64_t>({1, 2}, {2, 3}), 5);
  EXPECT_EQ(offsets.best(), -1);
  EXPECT_EQ(offsets.share(-1), 1);
}

TEST(TargetScore, AJobOfEvenAttentionIsMeasuredByEntropy) {
  const Array even = one_head({{1, 0, 0}, {.5F, .5F, 0}, {.5F, .25F, .25F}});
  const TargetScore s = score_of(even, {0, 0, no}, HeadTarget::Kind::uniform);
  EXPECT_EQ(s.queries, 1);
  EXPECT_DOUBLE_EQ(s.normalised_entropy, 1);
  EXPECT_EQ(s.mass, 0);
  EXPECT_TRUE(is_clean(s, HeadTarget::Kind::uniform));
  EXPECT_EQ(s.strength(HeadTarget::Kind::uniform), 1);
}

TEST(TargetScore, WithoutLabelsThereIsNone) {
  const TargetScore s = score_of(one_hot({0, 1}), {no, no});
  EXPECT_EQ(s.queries, 0);
  EXPECT_FALSE(is_clean(s, HeadTarget::Kind::key));
  EXPECT_EQ(LabelOffsets().best(), 0);
  EXPECT_EQ(LabelOffsets().share(0), 0);
}

}  // namespace
}  // namespace headlab
