#include "framework/heads/pattern_summary.h"

#include <gtest/gtest.h>

#include "tests/heads/support.h"

namespace headlab {
namespace {

PatternSummary summary_of(const Array& pattern, const Mask& mask = Mask::causal(),
                          const Array& counted = {}) {
  TelemetryOptions options{.offsets = summary_offsets(pattern.dim(2), pattern.dim(3)), .keys = {0}};
  options.counted = counted;
  return pattern_summary(telemetry_of(pattern, mask, options).heads[0], options.offsets.front());
}

TEST(PatternSummary, AnEvenPatternHasNormalisedEntropyOne) {
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

TEST(PatternSummary, AHeadThatLooksOneBackIsSharpAndAtOffsetMinusOne) {
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

TEST(PatternSummary, AnOffsetIsMeasuredOverTheQueriesThatAllowIt) {
  // Offset −2 is allowed for queries 2, 3, 4 of the four that count, and holds for two of them.
  const PatternSummary s = summary_of(one_hot({0, 1, 0, 3, 2}));
  EXPECT_EQ(s.offset_queries[static_cast<std::size_t>(-2 - s.first_offset)], 3);
  EXPECT_DOUBLE_EQ(s.share_at(-2), 2.0 / 3);
  EXPECT_DOUBLE_EQ(s.mass_at(-2), 2.0 / 3);
  EXPECT_EQ(s.share_at(0), 0.5);
  EXPECT_EQ(s.best_offset(), -2);
}

TEST(PatternSummary, AnOffsetThatFewQueriesAllowIsNotChosen) {
  // Offset −6 holds wherever it is allowed, but that is one query of six.
  const PatternSummary s = summary_of(one_hot({0, 1, 2, 3, 4, 5, 0}));
  EXPECT_EQ(s.share_at(-6), 1);
  EXPECT_EQ(s.best_offset(), 0);
  EXPECT_DOUBLE_EQ(s.share_at(0), 5.0 / 6);
}

TEST(PatternSummary, TiesGoToTheLowerKey) {
  const PatternSummary s = summary_of(one_head({{1, 0}, {.5F, .5F}}));
  EXPECT_EQ(s.share_at(-1), 1);
  EXPECT_EQ(s.share_at(0), 0);
}

TEST(PatternSummary, TheLastQueryIsAlignedWithTheLastKey) {
  const PatternSummary s = summary_of(one_head({{0, 0, 0, 1, 0}, {0, 0, 0, 1, 0}}), Mask());
  EXPECT_EQ(s.first_offset, -4);
  EXPECT_EQ(s.offset_mass.size(), 6U);
  EXPECT_EQ(s.share_at(0), 0.5);
  EXPECT_EQ(s.share_at(-1), 0.5);
  EXPECT_EQ(s.distance, 0.5);
}

TEST(PatternSummary, PaddingIsNoKeyAndTakesPartInNothing) {
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

TEST(PatternSummary, WithoutQueriesEverythingIsZero) {
  const PatternSummary s = summary_of(one_hot({0}));
  EXPECT_EQ(s.queries, 0);
  EXPECT_EQ(s.normalised_entropy, 0);
  EXPECT_EQ(s.best_offset(), 0);
  EXPECT_EQ(summary_of(Array::zeros({0, 1, 3, 3})).queries, 0);
}

TEST(PatternSummary, HasAllOffsetsOfAShortContextAndTheNearOnesOfALongOne) {
  EXPECT_EQ(summary_offsets(2, 5), (std::vector<std::int64_t>{-4, -3, -2, -1, 0, 1}));
  const std::vector<std::int64_t> all = summary_offsets(65, 65);
  EXPECT_EQ(all.size(), 129U);
  EXPECT_EQ(all.front(), -64);
  EXPECT_EQ(summary_offsets(5, 125).front(), -124);
  for (const auto& far : {summary_offsets(65, 66), summary_offsets(1000, 1000)}) {
    EXPECT_EQ(far.size(), 129U);
    EXPECT_EQ(far.front(), -64);
    EXPECT_EQ(far.back(), 64);
  }
}

TEST(PatternSummary, WithoutTelemetryEverythingIsZero) {
  const PatternSummary s = pattern_summary(HeadTelemetry{}, 0);
  EXPECT_EQ(s.queries, 0);
  EXPECT_EQ(s.sink_mass, 0);
  EXPECT_EQ(s.best_offset(), 0);
}

}  // namespace
}  // namespace headlab
