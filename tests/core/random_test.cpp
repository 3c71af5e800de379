#include "framework/core/random.h"

#include <algorithm>
#include <map>
#include <set>

#include "tests/support/errors.h"

namespace headlab {
namespace {

using Words = std::array<std::uint32_t, 4>;

TEST(Philox, MeetsThePublishedVectors) {
  EXPECT_EQ(philox(0, 0, 0), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox(UINT64_MAX, UINT64_MAX, UINT64_MAX),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  // Counter 243f6a88 85a308d3 13198a2e 03707344, key a4093822 299f31d0, the first word lowest.
  EXPECT_EQ(philox(0x299f31d0a4093822, 0x0370734413198a2e, 0x85a308d3243f6a88),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Hash, NeverChanges) {
  EXPECT_EQ(hash(""), 0xf52a15e9a9b5e89bU);
  EXPECT_EQ(hash("a"), 0x02c0bdbf481420f8U);
  EXPECT_EQ(hash("blocks.0.attn.q"), 0x173304f1df3a7187U);
  EXPECT_EQ(hash(1, 2), 0xf10438cfd77fee0cU);
  EXPECT_EQ(hash(2, 1), 0xf057d5e2f49626e5U);
}

TEST(NormalQuantile, MeetsHighPrecisionValues) {
  const std::map<double, double> known{
      {0.975, 1.9599639845400538556},  {0.9, 1.2815515655446005935},    {0.6, 0.25334710313579974132},
      {0.925, 1.4395314709384562291},  {0.075, -1.4395314709384559349}, {0.01, -2.3263478740408410931},
      {1e-3, -3.0902323061678135354},  {1e-4, -3.7190164854556805523},  {1e-10, -6.3613409024040561991},
      {1e-11, -6.7060231554951362961}, {1e-12, -7.0344838253011319326}, {1e-100, -21.273453560965324294},
      {1e-300, -37.047096299361199237}};
  for (const auto& [p, want] : known) {
    EXPECT_NEAR(normal_quantile(p), want, 1e-15 * std::abs(want)) << p;
  }
  EXPECT_EQ(normal_quantile(0.5), 0);
  EXPECT_EQ(normal_quantile(0.25), -normal_quantile(0.75));
}

TEST(NormalQuantile, RefusesWhatIsNoProbability) {
  EXPECT_EQ(error_of([] { normal_quantile(0); }), "normal_quantile: p = 0 is not in (0, 1)");
  EXPECT_EQ(error_of([] { normal_quantile(1); }), "normal_quantile: p = 1 is not in (0, 1)");
  EXPECT_EQ(error_of([] { normal_quantile(std::nan("")); }), "normal_quantile: p = nan is not in (0, 1)");
}

TEST(OpenUniform, IsNever0Or1) {
  EXPECT_EQ(open_uniform(0), 0x1p-53);
  EXPECT_EQ(open_uniform(UINT64_MAX), 1 - 0x1p-53);
  EXPECT_TRUE(std::isfinite(normal_quantile(open_uniform(UINT64_MAX))));
}

TEST(Random, IsAFunctionOfItsArguments) {
  Random a(7, Stream::data, 3);
  Random b(7, Stream::data, 3);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(a.next_u32(), b.next_u32());
  Random copy = a;
  EXPECT_EQ(copy.normal(), a.normal());
}

TEST(Random, NeverChanges) {
  // The four words are those of philox at the sequence's place, in order.
  Random random(7, Stream::data, 3);
  for (std::uint64_t block = 0; block < 3; ++block) {
    for (const std::uint32_t word : philox(hash(7, 2), 3, block)) EXPECT_EQ(random.next_u32(), word);
  }
  Random wide(7, Stream::data, 3);
  const Words words = philox(hash(7, 2), 3, 0);
  EXPECT_EQ(wide.next_u64(), std::uint64_t{words[0]} << 32 | words[1]);
}

TEST(Random, SeedsStreamsAndIndicesDiffer) {
  std::set<std::uint64_t> first;
  for (const std::uint64_t seed : {0, 1, 2}) {
    for (const Stream stream : {Stream::initial_weights, Stream::data, Stream::dropout, Stream::evaluation,
                                Stream::sampling, Stream::statistics}) {
      for (const std::uint64_t index : {0, 1, 2}) first.insert(Random(seed, stream, index).next_u64());
    }
  }
  EXPECT_EQ(first.size(), 3U * 6U * 3U);
}

TEST(Random, UniformAndNormalHaveTheirMoments) {
  Random random(1, Stream::statistics);
  const int n = 200'000;
  double sum = 0;
  double low = 1;
  double high = 0;
  for (int i = 0; i < n; ++i) {
    const double u = random.uniform();
    low = std::min(low, u);
    high = std::max(high, u);
    sum += u;
  }
  EXPECT_GE(low, 0);
  EXPECT_LT(high, 1);
  EXPECT_NEAR(sum / n, 0.5, 5 * 0.2887 / std::sqrt(n));
  double mean = 0;
  double square = 0;
  double fourth = 0;
  for (int i = 0; i < n; ++i) {
    const double z = random.normal();
    mean += z / n;
    square += z * z / n;
    fourth += z * z * z * z / n;
  }
  EXPECT_NEAR(mean, 0, 5 / std::sqrt(n));
  EXPECT_NEAR(square, 1, 5 * std::sqrt(2.0 / n));
  EXPECT_NEAR(fourth, 3, 5 * std::sqrt(96.0 / n));
}

TEST(Random, BernoulliMeetsItsProbability) {
  Random random(2, Stream::dropout);
  int ones = 0;
  for (int i = 0; i < 100'000; ++i) {
    ones += random.bernoulli(0.1);
    EXPECT_FALSE(random.bernoulli(0));
    EXPECT_TRUE(random.bernoulli(1));
  }
  EXPECT_NEAR(ones, 10'000, 5 * std::sqrt(9000));
}

TEST(Random, BelowIsUnbiased) {
  Random random(3, Stream::statistics);
  std::array<int, 7> counts{};
  for (int i = 0; i < 70'000; ++i) ++counts.at(static_cast<std::size_t>(random.below(7)));
  for (const int count : counts) EXPECT_NEAR(count, 10'000, 5 * std::sqrt(8571));
  // With this bound the remainder of a 64-bit number, or the high half of an unfiltered product, would be
  // in one third of the range half as often again as in the others.
  const std::int64_t third = std::int64_t{1} << 61;
  std::array<int, 3> thirds{};
  for (int i = 0; i < 30'000; ++i) ++thirds.at(static_cast<std::size_t>(random.below(3 * third) / third));
  for (const int count : thirds) EXPECT_NEAR(count, 10'000, 5 * std::sqrt(6667));
  std::array<int, 3> residues{};
  for (int i = 0; i < 30'000; ++i) ++residues.at(static_cast<std::size_t>(random.below(3 * third) % 3));
  for (const int count : residues) EXPECT_NEAR(count, 10'000, 5 * std::sqrt(6667));
}

TEST(Random, BelowKnowsItsEdges) {
  Random random(4, Stream::statistics);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(random.below(1), 0);
  for (int i = 0; i < 10; ++i) EXPECT_GE(random.below(INT64_MAX), 0);
  EXPECT_EQ(error_of([&] { random.below(0); }), "random: below(0) needs a positive bound");
  EXPECT_EQ(error_of([&] { random.below(-3); }), "random: below(-3) needs a positive bound");
}

TEST(Random, PermutationsAreValidAndEquallyLikely) {
  Random random(5, Stream::data);
  EXPECT_TRUE(random.permutation(0).empty());
  EXPECT_EQ(random.permutation(1), (std::vector<std::int64_t>{0}));
  auto order = random.permutation(1009);
  EXPECT_FALSE(std::is_sorted(order.begin(), order.end()));
  std::sort(order.begin(), order.end());
  for (std::int64_t i = 0; i < 1009; ++i) EXPECT_EQ(order[static_cast<std::size_t>(i)], i);
  std::map<std::vector<std::int64_t>, int> counts;
  for (int i = 0; i < 12'000; ++i) ++counts[random.permutation(3)];
  EXPECT_EQ(counts.size(), 6U);
  for (const auto& [permutation, count] : counts) EXPECT_NEAR(count, 2000, 5 * std::sqrt(1667));
  EXPECT_EQ(error_of([&] { random.permutation(-1); }), "random: permutation(-1) needs a length from 0 on");
}

}  // namespace
}  // namespace headlab
