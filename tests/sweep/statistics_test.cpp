#include "framework/sweep/statistics.h"

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "framework/core/check.h"
#include "framework/core/random.h"

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

// Student's sleep data (1908), as R 4 prints for t.test(Pair(extra[group == 2], extra[group == 1]) ~ 1,
// data = sleep): mean 1.58, 95 percent confidence interval 0.7001142 to 2.4598858.
TEST(Statistics, AgreesWithRsPairedTTest) {
  const std::vector<SeedValues> drugs{{.7, -1.6, -.2, -1.2, -.1, 3.4, 3.7, .8, 0.0, 2.0},
                                      {1.9, .8, 1.1, .1, -.1, 4.4, 5.5, 1.6, 4.6, 3.4}};
  const Comparison c = compare_levels(drugs, 0).front();
  EXPECT_NEAR(*c.mean, 1.58, 1e-12);
  EXPECT_NEAR(c.interval->low, 0.7001142, 1e-7);
  EXPECT_NEAR(c.interval->high, 2.4598858, 1e-7);
}

// Darwin's maize, in eighths of an inch: crossed less self-fertilised plants. Fisher (The Design of
// Experiments, 1935, section 21) counted by hand that 1726 of the 2^15 ways to give signs are as extreme.
TEST(Statistics, AgreesWithFishersCountOnDarwinsMaize) {
  const SeedValues crossed{49, -67, 8, 16, 6, 23, 28, 41, 14, 29, 56, 24, 75, 60, -48};
  const std::vector<SeedValues> levels{SeedValues(crossed.size(), 0.0), crossed};
  EXPECT_EQ(compare_levels(levels, 0).front().p, 1726.0 / 32768);
}

// Seeds that are good or bad for every level, noise of each run, a true difference of .3: 1000 sweeps of five
// seeds and four levels.
TEST(Statistics, IntervalsCoverTheTruthInNineteenOfTwentySweeps) {
  constexpr int sweeps = 1000, seeds = 5;
  Random random(1, Stream::statistics);
  int means = 0, differences = 0, all = 0;
  for (int sweep = 0; sweep < sweeps; ++sweep) {
    std::vector<SeedValues> levels(4);
    for (int seed = 0; seed < seeds; ++seed) {
      const double shared = 0.4 * random.normal();
      for (std::size_t level = 0; level < levels.size(); ++level) {
        levels[level].emplace_back(0.3 * static_cast<double>(level) + shared + 0.1 * random.normal());
      }
    }
    means += std::abs(*summarise(levels[0]).mean) <= summarise(levels[0]).interval->half_width() ? 1 : 0;
    for (const Comparison& c : compare_levels(levels, 0)) {
      const double truth = 0.3 * static_cast<double>(c.level);
      differences += c.interval->low <= truth && truth <= c.interval->high ? 1 : 0;
      ++all;
    }
  }
  EXPECT_GE(means, 0.93 * sweeps);
  EXPECT_LE(means, 0.97 * sweeps);
  EXPECT_GE(differences, 0.93 * all);
  EXPECT_LE(differences, 0.97 * all);
}

// Without a difference anywhere Holm's p-values under 0.05 show up in at most one sweep of twenty, over all
// three comparisons together.
TEST(Statistics, AdjustedTestsRarelyFindWhatIsNotThere) {
  constexpr int sweeps = 1000, seeds = 8;
  Random random(2, Stream::statistics);
  int wrong = 0;
  for (int sweep = 0; sweep < sweeps; ++sweep) {
    std::vector<SeedValues> levels(4);
    for (SeedValues& level : levels) {
      for (int seed = 0; seed < seeds; ++seed) level.emplace_back(random.normal());
    }
    const auto comparisons = compare_levels(levels, 0);
    wrong += std::any_of(comparisons.begin(), comparisons.end(),
                         [](const Comparison& c) { return *c.adjusted_p < 0.05; })
                 ? 1
                 : 0;
  }
  EXPECT_LE(wrong, 0.06 * sweeps);
  EXPECT_GT(wrong, 0);
}

}  // namespace
}  // namespace headlab
