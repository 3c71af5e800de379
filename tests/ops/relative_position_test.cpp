// ALiBi's slopes and T5's buckets against the published rules.
#include "framework/ops/relative_position.h"

#include <cmath>
#include <vector>

#include "framework/autograd/gradcheck.h"
#include "tests/support/ops.h"

namespace headlab {
namespace {

// The function in ALiBi's own code, as published.
std::vector<double> published_slopes(std::int64_t n) {
  const double exponent = std::log2(static_cast<double>(n));
  if (exponent == std::floor(exponent)) {
    const double start = std::pow(2, -std::pow(2, -(exponent - 3)));
    std::vector<double> slopes;
    for (std::int64_t i = 0; i < n; ++i) slopes.push_back(start * std::pow(start, static_cast<double>(i)));
    return slopes;
  }
  const auto closest = static_cast<std::int64_t>(std::pow(2, std::floor(exponent)));
  std::vector<double> slopes = published_slopes(closest);
  const std::vector<double> finer = published_slopes(2 * closest);
  for (std::size_t i = 0; std::ssize(slopes) < n; i += 2) slopes.push_back(finer[i]);
  return slopes;
}

TEST(Alibi, SlopesFollowThePublishedRuleForAnyNumberOfHeads) {
  for (std::int64_t heads = 1; heads <= 16; ++heads) {
    const std::vector<double> got = alibi_slopes(heads);
    const std::vector<double> want = published_slopes(heads);
    ASSERT_EQ(got.size(), want.size());
    for (std::size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], want[i], 1e-15) << heads << ", " << i;
  }
  EXPECT_EQ(alibi_slopes(1), (std::vector<double>{1.0 / 256}));
  EXPECT_EQ(alibi_slopes(6), (std::vector<double>{0.25, 0.0625, 0.015625, 0.00390625, 0.5, 0.125}));
  EXPECT_EQ(error_of([] { alibi_slopes(0); }), "alibi_slopes: heads 0 must be at least 1");
}

TEST(Alibi, BiasFallsWithTheDistance) {
  EXPECT_EQ(numbers(alibi_bias(2, 2, 3, DType::f64).value()),
            (std::vector<double>{-2.0 / 16, -1.0 / 16, 0, -1.0 / 16, -2.0 / 256, -1.0 / 256, 0, -1.0 / 256}));
  EXPECT_EQ(alibi_bias(3, 0, 0, DType::f32).shape(), (Shape{3, 0}));
  EXPECT_EQ(alibi_bias(3, 0, 5, DType::f32).shape(), (Shape{3, 4}));
}

// The distances behind a query at which another bucket begins.
std::vector<std::int64_t> starts(const RelativeBuckets& options) {
  std::vector<std::int64_t> list;
  std::int64_t before = -1;
  for (std::int64_t distance = 0; distance < 1000; ++distance) {
    const std::int64_t bucket = relative_bucket(-distance, options);
    if (bucket == before) continue;
    EXPECT_EQ(bucket, before + 1);
    before = bucket;
    list.push_back(distance);
  }
  return list;
}

// Computed with the formula of T5 as the transformers package has it, in f32.
TEST(RelativeBuckets, AreThoseOfT5) {
  using Starts = std::vector<std::int64_t>;
  EXPECT_EQ(starts({}), (Starts{0, 1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 23, 32, 46, 64, 91}));
  EXPECT_EQ(starts({.bidirectional = false}),
            (Starts{0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15,
                    16, 19, 21, 24, 27, 31, 35, 40, 46, 52, 59, 67, 77, 87, 99, 113}));
  EXPECT_EQ(starts({.buckets = 8, .max_distance = 20}), (Starts{0, 1, 2, 7}));
  EXPECT_EQ(starts({.buckets = 6, .max_distance = 19, .bidirectional = false}), (Starts{0, 1, 2, 3, 6, 11}));
  EXPECT_EQ(starts({.buckets = 32, .max_distance = 32}),
            (Starts{0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 23, 27}));
  for (const std::int64_t ahead : {1, 5, 11, 200}) {
    EXPECT_EQ(relative_bucket(ahead, {}), 16 + relative_bucket(-ahead, {}));
    EXPECT_EQ(relative_bucket(ahead, {.bidirectional = false}), 0);
  }
}

TEST(RelativeBuckets, ImpossibleOnesAreRefused) {
  const auto text = [](const RelativeBuckets& o) { return error_of([&] { relative_bucket(0, o); }); };
  EXPECT_EQ(text({.buckets = 5}),
            "relative_bucket: 5 buckets; needs at least 2, or an even number from 4 on when bidirectional");
  EXPECT_NE(text({.buckets = 1, .bidirectional = false}), "");
  EXPECT_EQ(text({.buckets = 32, .max_distance = 8}),
            "relative_bucket: max_distance 8 is not over the 8 exact buckets");
  EXPECT_EQ(error_of([] {
              relative_bias(Tensor::zeros({4, 3}), 2, 2, {});
            }),
            "relative_bias: needs a table [32, heads], not [4, 3]");
}

TEST(RelativeBias, LooksUpTheBucketOfEveryDistance) {
  const RelativeBuckets buckets{.buckets = 4, .max_distance = 3, .bidirectional = false};
  const Tensor table(random_array({4, 3}, 1), true);
  const Array bias = relative_bias(table, 2, 5, buckets).value();
  ASSERT_EQ(bias.shape(), (Shape{3, 6}));
  for (std::int64_t head = 0; head < 3; ++head) {
    for (std::int64_t i = 0; i < 6; ++i) {
      const std::int64_t bucket = relative_bucket(i - 4, buckets);
      EXPECT_EQ(bias.at(head * 6 + i), table.value().at(bucket * 3 + head));
    }
  }
  const auto f = [&](std::span<const Tensor> in) { return relative_bias(in[0], 2, 5, buckets); };
  const GradcheckResult result = gradcheck(f, {table});
  EXPECT_TRUE(result) << result.message;
  EXPECT_EQ(relative_bias(table, 0, 0, buckets).shape(), (Shape{3, 0}));
}

}  // namespace
}  // namespace headlab
