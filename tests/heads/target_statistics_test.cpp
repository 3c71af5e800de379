#include "framework/heads/target_statistics.h"

#include <gtest/gtest.h>

#include "tests/heads/support.h"
#include "tests/support/errors.h"

namespace headlab {
namespace {

constexpr std::int64_t no = unscored;

TargetStatistics of(const Array& pattern, const std::vector<std::int64_t>& keys,
                    HeadTarget::Kind kind = HeadTarget::Kind::key) {
  TargetStatistics statistics(kind);
  statistics.add(PatternRows(pattern, Mask::causal(), Array()),
                 Array::of<std::int64_t>({1, std::ssize(keys)}, keys));
  return statistics;
}

TEST(TargetStatistics, MassIsTheMeanWeightOfTheLabelledKeys) {
  const Array pattern =
      one_head({{1, 0, 0, 0}, {.25F, .75F, 0, 0}, {.5F, .5F, 0, 0}, {.125F, .125F, .5F, .25F}});
  const TargetScore s = of(pattern, {no, 0, 1, 2}).score(0);
  EXPECT_EQ(s.queries, 3);
  EXPECT_DOUBLE_EQ(s.mass, (.25 + .5 + .5) / 3);
  EXPECT_DOUBLE_EQ(s.relation, 1.0 / 3);  // query 2 is a tie, which goes to key 0
  EXPECT_FALSE(is_clean(s, HeadTarget::Kind::key));
}

TEST(TargetStatistics, AQueryWithOneKeyDoesNotCount) {
  EXPECT_EQ(of(one_hot({0, 0}), {0, 0}).score(0).queries, 1);
}

TEST(TargetStatistics, TheBaselineIsTheMostFrequentOffset) {
  const TargetStatistics s = of(one_hot({0, 0, 1, 2, 3}), {no, 0, 0, 1, 3});
  EXPECT_EQ(s.best_offset(), -2);  // −1, −2, −2, −1: the lower of two that are equally frequent
  EXPECT_EQ(s.share_of_offset(-2), 0.5);
  EXPECT_EQ(s.share_of_offset(0), 0);
  EXPECT_EQ(s.share_of_offset(-77), 0);
}

TEST(TargetStatistics, OffsetsAreCountedWithTheLastQueryAlignedWithTheLastKey) {
  TargetStatistics s(HeadTarget::Kind::key);
  s.add(PatternRows(one_head({{0, 0, 1, 0, 0}, {0, 0, 0, 1, 0}}), Mask(), Array()),
        Array::of<std::int64_t>({1, 2}, {2, 3}));
  EXPECT_EQ(s.best_offset(), -1);
  EXPECT_EQ(s.share_of_offset(-1), 1);
}

TEST(TargetStatistics, AJobOfEvenAttentionIsMeasuredByEntropy) {
  const Array even = one_head({{1, 0, 0}, {.5F, .5F, 0}, {.5F, .25F, .25F}});
  const TargetScore s = of(even, {0, 0, no}, HeadTarget::Kind::uniform).score(0);
  EXPECT_EQ(s.queries, 1);
  EXPECT_DOUBLE_EQ(s.normalised_entropy, 1);
  EXPECT_EQ(s.mass, 0);
  EXPECT_TRUE(is_clean(s, HeadTarget::Kind::uniform));
  EXPECT_EQ(s.strength(HeadTarget::Kind::uniform), 1);
}

TEST(TargetStatistics, WithoutLabelsThereIsNoScore) {
  const TargetStatistics s = of(one_hot({0, 1}), {no, no});
  EXPECT_EQ(s.score(0).queries, 0);
  EXPECT_EQ(s.best_offset(), 0);
  EXPECT_FALSE(is_clean(s.score(0), HeadTarget::Kind::key));
  EXPECT_EQ(TargetStatistics(HeadTarget::Kind::key).score(3).queries, 0);
}

TEST(TargetStatistics, NamesALabelThatItsQueryMayNotSee) {
  EXPECT_EQ(error_of([] {
              of(one_hot({0, 1, 2}), {no, 2, no});
            }),
            "head target: example 0, query 1: key 2 may not be attended to");
  EXPECT_EQ(error_of([] {
              of(one_hot({0, 1, 2}), {no, 0});
            }),
            "head target: labels [1, 2] do not fit patterns of 3 queries");
}

}  // namespace
}  // namespace headlab
