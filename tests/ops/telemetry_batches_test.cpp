// Telemetry of whole batches: single queries, empty dimensions, merging, threads, refusals.
#include "framework/ops/attention.h"
#include "framework/ops/telemetry.h"
#include "tests/support/ops.h"

namespace headlab {
namespace {

/// Weights of random scores, [2, 3, 5, 7] unless told.
Array random_weights(const Mask& mask, std::uint64_t seed, const Shape& shape = {2, 3, 5, 7}) {
  return masked_softmax(Tensor(random_array(shape, seed)), mask).value();
}

TEST(TelemetryOfBatches, SinglesAddUpToTheSums) {
  const Mask mask = Mask::causal();
  TelemetryOptions options{.offsets = {-1, 0}, .keys = {0}, .per_query = true};
  options.labels = Array::full({1, 2, 5}, 2, DType::i64);
  const Array weights = random_weights(mask, 11).to(DType::f32);
  const Telemetry t = telemetry_of(weights, mask, options);
  EXPECT_EQ(t.entropy.dtype(), DType::f32);
  EXPECT_EQ(t.masses.shape(), Shape({2, 3, 5, 4}));
  for (std::int64_t head = 0; head < 3; ++head) {
    const HeadTelemetry& sums = t.heads[static_cast<std::size_t>(head)];
    double entropy = 0;
    double sink = 0;
    for (std::int64_t b = 0; b < 2; ++b) {
      for (std::int64_t q = 0; q < 5; ++q) {
        const std::int64_t r = (b * 3 + head) * 5 + q;
        if (t.allowed.data<std::int64_t>()[r] < 2) continue;
        entropy += t.entropy.at(r);
        sink += t.masses.at(r * 4 + 2);
      }
    }
    EXPECT_EQ(sums.queries, 10);
    EXPECT_NEAR(sums.entropy, entropy, 1e-5);
    EXPECT_NEAR(sums.keys[0].mass, sink, 1e-5);
    EXPECT_GT(sums.mean(&HeadTelemetry::entropy), 0);
  }
}

TEST(TelemetryOfBatches, EmptyDimensionsGiveNothing) {
  for (const Shape& shape : {Shape{0, 2, 3, 3}, Shape{2, 2, 0, 3}, Shape{2, 2, 3, 0}}) {
    const TelemetryOptions options{.offsets = {0}, .keys = {0}, .per_query = true};
    const Telemetry t = telemetry_of(Array::zeros(shape), Mask(), options);
    ASSERT_EQ(t.heads.size(), 2);
    EXPECT_EQ(t.heads[1].queries, 0);
    EXPECT_EQ(t.heads[1].mean(&HeadTelemetry::entropy), 0);
    EXPECT_EQ(t.heads[1].offsets[0].share(), 0);
    EXPECT_EQ(t.argmax.shape(), Shape({shape[0], 2, shape[2]}));
  }
}

TEST(TelemetryOfBatches, BatchesMergeToTheWhole) {
  const Mask mask = Mask::causal();
  const TelemetryOptions options{.offsets = {-2, 0}, .keys = {0}, .per_query = true};
  const Array weights = random_weights(mask, 17);
  const Telemetry whole = telemetry_of(weights, mask, options);
  Telemetry merged = telemetry_of(weights.range(0, 1), mask, options);
  merged.merge(telemetry_of(weights.range(1, 2), mask, options));
  for (std::size_t head = 0; head < 3; ++head) {
    EXPECT_EQ(merged.heads[head].queries, whole.heads[head].queries);
    EXPECT_NEAR(merged.heads[head].entropy, whole.heads[head].entropy, 1e-14);
    EXPECT_NEAR(merged.heads[head].effective_keys, whole.heads[head].effective_keys, 1e-13);
    EXPECT_NEAR(merged.heads[head].offsets[0].mass, whole.heads[head].offsets[0].mass, 1e-14);
    EXPECT_EQ(merged.heads[head].offsets[0].argmax, whole.heads[head].offsets[0].argmax);
    EXPECT_EQ(merged.heads[head].keys[0].queries, whole.heads[head].keys[0].queries);
  }
  EXPECT_FALSE(merged.entropy);
  EXPECT_FALSE(merged.masses);
}

TEST(TelemetryOfBatches, OtherHeadsOrOptionsDoNotMerge) {
  const Array weights = random_weights({}, 3);
  Telemetry t = telemetry_of(weights, {}, {.offsets = {1}});
  EXPECT_EQ(error_of([&] {
              t.merge(telemetry_of(random_weights({}, 3, {1, 2, 3, 3}), {}, {.offsets = {1}}));
            }),
            "telemetry: 3 heads do not join with 2");
  EXPECT_EQ(error_of([&] { t.merge(telemetry_of(weights, {}, {.keys = {1}})); }),
            "telemetry: 1 offsets, 0 keys and 0 labels do not join with 0, 1 and 0");
}

TEST(TelemetryOfBatches, HasTheSameBitsForAnyNumberOfThreads) {
  const Shape shape{3, 5, 31, 37};
  const Array weights = random_weights(Mask::causal(), 23, shape);
  expect_same_bits_for_any_threads([&] {
    std::vector<double> sums;
    for (const HeadTelemetry& head : telemetry_of(weights, Mask::causal(), {.offsets = {-1}}).heads) {
      for (const double x : {head.entropy, head.effective_keys, head.distance, head.offsets[0].mass}) {
        sums.push_back(x);
      }
    }
    return std::vector<Array>{Array::of<double>({static_cast<std::int64_t>(sums.size())}, sums)};
  });
}

TEST(TelemetryOfBatches, RefusesWhatDoesNotFit) {
  const auto message = [](const TelemetryOptions& options) {
    return error_of([&] { check_telemetry(options, 2, 3, 5); });
  };
  EXPECT_EQ(message({.keys = {-1}}), "telemetry: -1 is not the place of a key");
  EXPECT_EQ(message({.labels = Array::full({1, 2, 3}, 5, DType::i64)}),
            "telemetry: a label of 5 is outside -1 … 4");
  EXPECT_EQ(message({.labels = Array::full({1, 2, 3}, -2, DType::i64)}),
            "telemetry: a label of -2 is outside -1 … 4");
  EXPECT_EQ(message({.labels = Array::zeros({2, 3}, DType::i64)}),
            "telemetry: needs labels i64 [1, 2, 3], not i64 [2, 3]");
  EXPECT_EQ(message({.tokens = Array::zeros({2, 5})}), "telemetry: needs tokens i64 [2, 5], not f32 [2, 5]");
  EXPECT_EQ(message({.counted = Array::zeros({2, 5}, DType::u8)}),
            "telemetry: needs counted queries u8 [2, 3], not u8 [2, 5]");
  EXPECT_EQ(error_of([&] {
              telemetry_of(Array::zeros({2, 3}), {}, {});
            }),
            "telemetry: needs weights [batch, heads, n_q, n_k], not [2, 3]");
}

}  // namespace
}  // namespace headlab
