#include "framework/heads/pattern_statistics.h"

#include <gtest/gtest.h>

#include "framework/core/parallel.h"
#include "framework/core/random.h"
#include "tests/heads/support.h"
#include "tests/support/errors.h"

namespace headlab {
namespace {

PatternSummary summary_of(const Array& pattern, const Mask& mask = Mask::causal(),
                          const Array& counted = {}) {
  PatternStatistics statistics;
  statistics.add(PatternRows(pattern, mask, counted));
  return statistics.summary(0);
}

TEST(PatternStatistics, AnEvenPatternHasNormalisedEntropyOne) {
  const float third = 1.0F / 3;
  const PatternSummary s = summary_of(one_head({{1, 0, 0}, {.5F, .5F, 0}, {third, third, third}}));
  EXPECT_EQ(s.queries, 2);  // query 0 has only itself to look at
  EXPECT_NEAR(s.entropy, (std::log(2) + std::log(3)) / 2, 1e-7);
  EXPECT_NEAR(s.normalised_entropy, 1, 1e-7);
  EXPECT_NEAR(s.effective_keys, 2.5, 1e-6);
  EXPECT_NEAR(s.confidence, (1.0 / 2 + 1.0 / 3) / 2, 1e-7);
  EXPECT_NEAR(s.distance, (0.5 + 1) / 2, 1e-7);
  EXPECT_NEAR(s.sink_mass, (1.0 / 2 + 1.0 / 3) / 2, 1e-7);
  EXPECT_NEAR(s.self_mass, (1.0 / 2 + 1.0 / 3) / 2, 1e-7);
}

TEST(PatternStatistics, AHeadThatLooksOneBackIsSharpAndAtOffsetMinusOne) {
  const PatternSummary s = summary_of(one_hot({0, 0, 1, 2, 3}));
  EXPECT_EQ(s.queries, 4);
  EXPECT_EQ(s.entropy, 0);
  EXPECT_EQ(s.normalised_entropy, 0);
  EXPECT_EQ(s.effective_keys, 1);
  EXPECT_EQ(s.confidence, 1);
  EXPECT_EQ(s.distance, 1);
  EXPECT_EQ(s.best_offset(), -1);
  EXPECT_EQ(s.heaviest_offset(), -1);
  EXPECT_EQ(s.share_at(-1), 1);
  EXPECT_EQ(s.mass_at(-1), 1);
  EXPECT_EQ(s.self_mass, 0);
  EXPECT_EQ(s.sink_mass, 0.25);
  EXPECT_EQ(s.share_at(-99), 0);
  EXPECT_EQ(s.share_at(99), 0);
}

TEST(PatternStatistics, AnOffsetIsMeasuredOverTheQueriesThatAllowIt) {
  // Offset −2 is allowed for queries 2, 3, 4 of the four that count, and holds for two of them.
  const PatternSummary s = summary_of(one_hot({0, 1, 0, 3, 2}));
  EXPECT_EQ(s.offset_queries[static_cast<std::size_t>(-2 - s.first_offset)], 3);
  EXPECT_DOUBLE_EQ(s.share_at(-2), 2.0 / 3);
  EXPECT_DOUBLE_EQ(s.mass_at(-2), 2.0 / 3);
  EXPECT_EQ(s.share_at(0), 0.5);
  EXPECT_EQ(s.best_offset(), -2);
}

TEST(PatternStatistics, AnOffsetThatFewQueriesAllowIsNotChosen) {
  // Offset −6 holds wherever it is allowed, but that is one query of six.
  const PatternSummary s = summary_of(one_hot({0, 1, 2, 3, 4, 5, 0}));
  EXPECT_EQ(s.share_at(-6), 1);
  EXPECT_EQ(s.best_offset(), 0);
  EXPECT_DOUBLE_EQ(s.share_at(0), 5.0 / 6);
}

TEST(PatternStatistics, TiesGoToTheLowerKey) {
  const PatternSummary s = summary_of(one_head({{1, 0}, {.5F, .5F}}));
  EXPECT_EQ(s.share_at(-1), 1);
  EXPECT_EQ(s.share_at(0), 0);
}

TEST(PatternStatistics, TheLastQueryIsAlignedWithTheLastKey) {
  const PatternSummary s = summary_of(one_head({{0, 0, 0, 1, 0}, {0, 0, 0, 1, 0}}), Mask());
  EXPECT_EQ(s.first_offset, -4);
  EXPECT_EQ(s.offset_mass.size(), 6U);
  EXPECT_EQ(s.share_at(0), 0.5);
  EXPECT_EQ(s.share_at(-1), 0.5);
  EXPECT_EQ(s.distance, 0.5);
}

TEST(PatternStatistics, PaddingIsNoKeyAndTakesPartInNothing) {
  // Keys 1 and 2 of three are real. Of queries only 1 and 2 count.
  const Array valid = Array::of<std::uint8_t>({1, 3}, {0, 1, 1});
  const Array pattern = one_head({{0, 1, 0}, {0, .5F, .5F}, {0, .25F, .75F}});
  const PatternSummary s = summary_of(pattern, Mask::valid_keys(valid), valid);
  EXPECT_EQ(s.queries, 2);
  EXPECT_NEAR(s.normalised_entropy, (1 + (.25 * std::log(4) + .75 * std::log(4.0 / 3)) / std::log(2)) / 2,
              1e-12);
  EXPECT_EQ(s.sink_mass, 0);
  EXPECT_EQ(s.offset_queries[static_cast<std::size_t>(-2 - s.first_offset)], 0);
  // With one real key there is nothing to choose.
  const Array lone = Array::of<std::uint8_t>({1, 3}, {0, 1, 0});
  EXPECT_EQ(summary_of(pattern, Mask::valid_keys(lone)).queries, 0);
}

TEST(PatternStatistics, WithoutQueriesEverythingIsZero) {
  const PatternSummary s = summary_of(one_hot({0}));
  EXPECT_EQ(s.queries, 0);
  EXPECT_EQ(s.normalised_entropy, 0);
  EXPECT_EQ(s.best_offset(), 0);
  EXPECT_EQ(summary_of(Array::zeros({0, 1, 3, 3})).queries, 0);
}

TEST(PatternStatistics, BatchesAddUp) {
  PatternStatistics statistics;
  statistics.add(PatternRows(one_hot({0, 0, 1}), Mask::causal(), Array()));
  statistics.add(PatternRows(one_hot({0, 1, 2}), Mask::causal(), Array()));
  const PatternSummary s = statistics.summary(0);
  EXPECT_EQ(s.queries, 4);
  EXPECT_EQ(s.share_at(-1), 0.5);
  EXPECT_EQ(s.self_mass, 0.5);
  EXPECT_EQ(error_of([&] {
              statistics.add(PatternRows(one_hot({0, 1}), Mask::causal(), Array()));
            }),
            "PatternStatistics: 1 heads of 2 x 2 do not fit earlier patterns of 1 heads of 3 x 3");
  EXPECT_EQ(error_of([&] { statistics.summary(1); }), "PatternStatistics: head 1 of 1 was asked for");
}

TEST(PatternStatistics, TheSameBitsForAnyNumberOfThreads) {
  Array pattern({7, 5, 23, 23});
  Random random(3, Stream::statistics);
  for (float& weight : pattern.values<float>()) weight = static_cast<float>(random.uniform());
  const auto entropies = [&](int count) {
    set_threads(count);
    PatternStatistics statistics;
    statistics.add(PatternRows(pattern, Mask::causal(), Array()));
    std::vector<double> all;
    for (std::int64_t head = 0; head < 5; ++head) all.push_back(statistics.summary(head).entropy);
    set_threads(0);
    return all;
  };
  EXPECT_EQ(entropies(1), entropies(7));
}

TEST(PatternRows, NameWhatDoesNotFit) {
  const Array good = one_hot({0, 1});
  EXPECT_EQ(error_of([&] {
              PatternRows(Array::zeros({2, 3}), Mask(), Array());
            }),
            "pattern: needs f32 [B, heads, n_q, n_k], not f32 [2, 3]");
  EXPECT_EQ(error_of([&] {
              PatternRows(good, Mask(), Array::zeros({1, 3}, DType::u8));
            }),
            "pattern: flags of queries u8 [1, 3] do not fit patterns of [1, 1, 2, 2]");
}

}  // namespace
}  // namespace headlab
