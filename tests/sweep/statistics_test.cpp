#include "framework/sweep/statistics.h"

#include <cmath>

#include <gtest/gtest.h>

#include "framework/core/check.h"

namespace headlab {
namespace {

const SeedValues one_head{.208, .203, .211, .211, .210};
const SeedValues two_heads{.414, .439, .440, .435, .455};
const SeedValues four_heads{.885, .866, .840, .640, .863};
const SeedValues eight_heads{1.0, 1.0, 1.0, 1.0, 1.0};

void expect_mean(const Summary& summary, double mean, double half_width) {
  EXPECT_NEAR(summary.mean.value(), mean, 5e-4);
  EXPECT_NEAR(summary.interval.value().half_width(), half_width, 5e-4);
  EXPECT_NEAR(summary.interval->low + summary.interval->half_width(), *summary.mean, 1e-15);
}

TEST(Statistics, SummariseTheHeadCountLadder) {
  expect_mean(summarise(one_head), .209, .004);
  expect_mean(summarise(two_heads), .437, .018);
  expect_mean(summarise(four_heads), .819, .126);
  const Summary flat = summarise(eight_heads);
  EXPECT_EQ(flat.mean, 1.0);
  EXPECT_EQ(flat.deviation, 0.0);
  EXPECT_EQ(flat.interval->low, 1.0);
  EXPECT_EQ(flat.interval->high, 1.0);
}

TEST(Statistics, SummariseByHand) {
  // Mean 3, squares 4 + 1 + 0 + 1 + 4 = 10, deviation sqrt(10 / 4), half width 2.776445 * sqrt(2.5 / 5).
  const Summary summary = summarise({1, 2, 3, 4, 5});
  EXPECT_EQ(summary.n, 5);
  EXPECT_NEAR(*summary.mean, 3, 1e-15);
  EXPECT_NEAR(*summary.deviation, std::sqrt(2.5), 1e-15);
  EXPECT_NEAR(summary.interval->half_width(), 2.776445105 * std::sqrt(0.5), 1e-9);
}

TEST(Statistics, OneValueHasNoInterval) {
  const Summary summary = summarise({0.5});
  EXPECT_EQ(summary.n, 1);
  EXPECT_EQ(summary.mean, 0.5);
  EXPECT_FALSE(summary.deviation);
  EXPECT_FALSE(summary.interval);
}

TEST(Statistics, FailedRunsAreLeftOutAndCounted) {
  const Summary summary = summarise({1.0, std::nullopt, 3.0, std::nan(""), HUGE_VAL});
  EXPECT_EQ(summary.n, 2);
  EXPECT_EQ(summary.missing, 3);
  EXPECT_EQ(summary.mean, 2.0);
  const Summary nothing = summarise({std::nullopt});
  EXPECT_EQ(nothing.n, 0);
  EXPECT_FALSE(nothing.mean);
  EXPECT_FALSE(nothing.interval);
  EXPECT_EQ(summarise({}).n, 0);
}

TEST(Statistics, ComparesPairsWithTheReference) {
  const std::vector<SeedValues> levels{one_head, four_heads};
  const auto comparisons = compare_levels(levels, 0);
  ASSERT_EQ(comparisons.size(), 1U);
  const Comparison& c = comparisons[0];
  EXPECT_EQ(c.level, 1U);
  EXPECT_EQ(c.n, 5);
  EXPECT_EQ(c.dropped, 0);
  // Differences .677 .663 .629 .429 .653: mean .6102, deviation .1027969.
  EXPECT_NEAR(*c.mean, .6102, 1e-12);
  EXPECT_NEAR(c.interval->half_width(), 2.776445 * .1027969 / std::sqrt(5.0), 1e-7);
  EXPECT_FALSE(c.p);
  EXPECT_FALSE(c.adjusted_p);
  EXPECT_EQ(c.reason, NoTest::too_few_seeds);
  EXPECT_EQ(verdict(c), "too few seeds");
}

TEST(Statistics, TestsFromSevenSeedsOnAndCorrectsOverTheLevels) {
  const SeedValues reference{.1, .2, .3, .4, .5, .6, .7};
  const SeedValues better{.5, .61, .72, .83, .94, 1.05, 1.16};
  const SeedValues mixed{.2, .12, .33, .37, .56, .54, .71};
  const std::vector<SeedValues> levels{better, reference, mixed, better};
  const auto comparisons = compare_levels(levels, 1);
  ASSERT_EQ(comparisons.size(), 3U);
  EXPECT_EQ(comparisons[0].level, 0U);
  EXPECT_EQ(comparisons[1].level, 2U);
  EXPECT_EQ(comparisons[2].level, 3U);
  EXPECT_EQ(comparisons[0].p, 2.0 / 128);
  EXPECT_EQ(comparisons[0].adjusted_p, 6.0 / 128);
  EXPECT_EQ(comparisons[2].adjusted_p, 6.0 / 128);
  EXPECT_GT(comparisons[1].p.value(), 0.5);
  EXPECT_EQ(verdict(comparisons[0]), "p = 0.047");
}

TEST(Statistics, AFailedRunDropsItsPair) {
  const SeedValues reference{.1, std::nullopt, .3, .4, .5, .6, .7, .8};
  const SeedValues level{.2, .9, std::nullopt, .41, .52, .63, .74, std::nan("")};
  const std::vector<SeedValues> levels{reference, level};
  const Comparison c = compare_levels(levels, 0).front();
  EXPECT_EQ(c.n, 5);
  EXPECT_EQ(c.dropped, 3);
  EXPECT_NEAR(*c.mean, (.1 + .01 + .02 + .03 + .04) / 5, 1e-15);
  EXPECT_EQ(c.reason, NoTest::too_few_seeds);
}

TEST(Statistics, EqualDifferencesHaveAPointIntervalAndNoTest) {
  // .9 - .8 and .3 - .2 differ in their last bits only.
  const std::vector<SeedValues> levels{{.8, .2, .5, .6, .7, .4, .1}, {.9, .3, .6, .7, .8, .5, .2}};
  const Comparison c = compare_levels(levels, 0).front();
  EXPECT_NEAR(*c.mean, .1, 1e-15);
  EXPECT_EQ(c.interval->low, *c.mean);
  EXPECT_EQ(c.interval->high, *c.mean);
  EXPECT_FALSE(c.p);
  EXPECT_EQ(c.reason, NoTest::all_equal);
  EXPECT_EQ(verdict(c), "all differences equal");
  const std::vector<SeedValues> same{eight_heads, eight_heads};
  EXPECT_EQ(compare_levels(same, 0).front().mean, 0.0);
  EXPECT_EQ(compare_levels(same, 0).front().reason, NoTest::all_equal);
}

TEST(Statistics, OnePairOrNoneHasNoInterval) {
  const std::vector<SeedValues> levels{{.1, std::nullopt}, {.3, .2}, {std::nullopt, .2}};
  const auto comparisons = compare_levels(levels, 0);
  EXPECT_EQ(comparisons[0].n, 1);
  EXPECT_NEAR(*comparisons[0].mean, .2, 1e-15);
  EXPECT_FALSE(comparisons[0].interval);
  EXPECT_EQ(comparisons[0].reason, NoTest::too_few_seeds);
  EXPECT_EQ(comparisons[1].n, 0);
  EXPECT_FALSE(comparisons[1].mean);
  EXPECT_EQ(verdict(comparisons[1]), "no shared seeds");
}

TEST(Statistics, SaysWhenSeedsAreTooManyOrTheEffectIsClear) {
  SeedValues reference, level;
  for (int seed = 0; seed < 41; ++seed) {
    reference.emplace_back(0.01 * seed);
    level.emplace_back(0.02 * seed + 0.1);
  }
  EXPECT_EQ(verdict(compare_levels(std::vector<SeedValues>{reference, level}, 0).front()), "too many seeds");
  reference.pop_back();
  level.pop_back();
  EXPECT_EQ(verdict(compare_levels(std::vector<SeedValues>{reference, level}, 0).front()), "p < 0.001");
}

TEST(Statistics, RefusesUnknownReferencesAndRaggedLevels) {
  const std::vector<SeedValues> levels{{.1, .2}, {.3}};
  EXPECT_THROW(compare_levels(levels, 2), Error);
  EXPECT_THROW(compare_levels(levels, 0), Error);
}

}  // namespace
}  // namespace headlab
