// The streaming kernel's telemetry against its definition, from the composite's weights.
#include <limits>

#include "framework/core/parallel.h"
#include "framework/ops/attention.h"
#include "tests/support/attention.h"

namespace headlab {
namespace {

struct TelemetryCase {
  AttentionSizes sizes;
  AttentionOptions options;
};

// A random mask and random wishes.
TelemetryCase draw_telemetry_case(std::uint64_t seed, DType dtype) {
  Random random(seed, Stream::statistics);
  TelemetryCase c;
  const std::int64_t most = random.bernoulli(0.7) ? 20 : 200;
  const std::int64_t kv = 1 + random.below(2);
  c.sizes = {.batch = 1 + random.below(3),
             .heads = kv * (1 + random.below(2)),
             .kv_heads = kv,
             .n_q = random.below(most),
             .n_k = random.below(most),
             .d_k = 1 + random.below(7),
             .d_v = 1 + random.below(3)};
  const AttentionSizes& s = c.sizes;
  c.options = {.heads = s.heads, .kv_heads = s.kv_heads, .scale = 0.5 + 3 * random.uniform()};
  Mask mask;
  switch (random.below(6)) {
    case 0:
    case 1:
      mask = Mask::causal();
      break;
    case 2:
      mask = Mask::causal_upper_left();
      break;
    case 3:
      mask = Mask::prefix(std::vector<std::int64_t>(static_cast<std::size_t>(s.batch), s.n_k / 3));
      break;
    case 4: {
      Array ids({1, s.n_k}, DType::i64);
      for (std::int64_t j = 0; j < s.n_k; ++j) ids.data<std::int64_t>()[j] = j / 7;
      mask = Mask::segments(ids);
      break;
    }
    default:
      break;
  }
  if (random.bernoulli(0.3)) mask = mask & Mask::window(1 + random.below(30));
  if (random.bernoulli(0.3)) {
    std::vector<std::int64_t> lengths;
    for (std::int64_t b = 0; b < s.batch; ++b) lengths.push_back(random.below(s.n_k + 1));
    mask = mask & Mask::key_lengths(lengths);
  }
  if (random.bernoulli(0.2)) {
    Array valid({s.batch, s.n_k}, DType::u8);
    for (auto& x : valid.values<std::uint8_t>()) x = random.bernoulli(0.7) ? 1 : 0;
    mask = mask & Mask::valid_keys(valid);
  }
  if (random.bernoulli(0.3)) {
    Array allow({s.batch, 1, s.n_q, s.n_k}, DType::u8);
    for (auto& x : allow.values<std::uint8_t>()) x = random.bernoulli(0.6) ? 1 : 0;
    mask = mask & Mask::allow(allow);
  }
  if (random.bernoulli(0.2)) {
    Array bias({1, s.heads, s.n_q, s.n_k}, DType::f64);
    for (double& x : bias.values<double>()) {
      x = random.bernoulli(0.1) ? -std::numeric_limits<double>::infinity() : random.normal();
    }
    mask = mask & Mask::bias(Tensor(bias.to(dtype)));
  }
  c.options.mask = mask;
  if (random.bernoulli(0.3)) c.options.sink = Tensor(random_array(random, {s.heads}, dtype));
  if (random.bernoulli(0.2)) c.options.dropout = 0.3;
  // Not so low that large scores become ties.
  if (random.bernoulli(0.2)) c.options.softcap = 10 + random.uniform();
  if (random.bernoulli(0.2)) {
    const Shape shape{s.heads, std::max<std::int64_t>(s.n_q + s.n_k - 1, 0)};
    c.options.offset_bias = Tensor(random_array(random, shape, dtype));
  }
  TelemetryOptions t{.offsets = {-3, -1, 0, 1}, .keys = {0, 2}, .per_query = true};
  Array labels({2, s.batch, s.n_q}, DType::i64);
  for (auto& x : labels.values<std::int64_t>()) x = s.n_k == 0 ? -1 : random.below(s.n_k + 1) - 1;
  t.labels = labels;
  Array tokens({s.batch, s.n_k}, DType::i64);
  for (auto& x : tokens.values<std::int64_t>()) x = random.below(4);
  t.tokens = tokens;
  Array counted({s.batch, s.n_q}, DType::u8);
  for (auto& x : counted.values<std::uint8_t>()) x = random.bernoulli(0.8) ? 1 : 0;
  if (random.bernoulli(0.5)) t.counted = counted;
  c.options.telemetry = t;
  return c;
}

// |Δ| ≤ relative·want + absolute, per query.
void expect_near(const Array& got, const Array& want, double relative, double absolute, const char* what) {
  ASSERT_EQ(got.shape(), want.shape()) << what;
  for (std::int64_t i = 0; i < got.size(); ++i) {
    ASSERT_LE(std::abs(got.at(i) - want.at(i)), relative * std::abs(want.at(i)) + absolute)
        << what << " " << i << ": " << got.at(i) << " instead of " << want.at(i);
  }
}

void expect_same_sums(const HeadTelemetry& got, const HeadTelemetry& want, double tolerance) {
  EXPECT_EQ(got.queries, want.queries);
  const auto scaled = tolerance * static_cast<double>(std::max<std::int64_t>(want.queries, 1));
  EXPECT_NEAR(got.entropy, want.entropy, 5 * scaled);
  EXPECT_NEAR(got.normalised_entropy, want.normalised_entropy, 2 * scaled);
  EXPECT_NEAR(got.effective_keys, want.effective_keys, 200 * scaled);
  EXPECT_NEAR(got.confidence, want.confidence, scaled);
  EXPECT_NEAR(got.distance, want.distance, 200 * scaled);
  const auto same = [&](const std::vector<HeadTelemetry::Mass>& a,
                        const std::vector<HeadTelemetry::Mass>& b) {
    ASSERT_EQ(a.size(), b.size());
    for (std::size_t i = 0; i < a.size(); ++i) {
      EXPECT_EQ(a[i].queries, b[i].queries) << i;
      EXPECT_EQ(a[i].argmax, b[i].argmax) << i;
      EXPECT_NEAR(a[i].mass, b[i].mass, scaled) << i;
      EXPECT_NEAR(a[i].normalised_entropy, b[i].normalised_entropy, 2 * scaled) << i;
    }
  };
  same(got.offsets, want.offsets);
  same(got.keys, want.keys);
  same(got.labels, want.labels);
  EXPECT_EQ(got.duplicate.queries, want.duplicate.queries);
  EXPECT_NEAR(got.duplicate.mass, want.duplicate.mass, scaled);
}

TEST(StreamingTelemetry, AgreesWithItsDefinitionOnRandomConfigurations) {
  for (const DType dtype : {DType::f64, DType::f32}) {
    const double tolerance = dtype == DType::f64 ? 1e-11 : 1e-5;
    for (std::uint64_t seed = 0; seed < 300; ++seed) {
      SCOPED_TRACE("draw_telemetry_case(" + std::to_string(seed) + ") in " + std::string(name_of(dtype)));
      const TelemetryCase c = draw_telemetry_case(seed, dtype);
      Random random(seed, Stream::evaluation);
      const AttentionCase in(random, c.sizes, dtype);
      const AttentionResult got = attention(in.q, in.k, in.v, c.options);
      const AttentionResult want = composite::attention(in.q, in.k, in.v, c.options);
      const double absolute = dtype == DType::f64 ? 1e-13 : 1e-6;
      expect_near(got.telemetry->entropy, want.telemetry->entropy, tolerance, absolute, "entropy");
      expect_near(got.telemetry->confidence, want.telemetry->confidence, tolerance, absolute, "confidence");
      expect_near(got.telemetry->distance, want.telemetry->distance, tolerance, 20 * absolute, "distance");
      expect_near(got.telemetry->masses, want.telemetry->masses, tolerance, absolute, "masses");
      expect_near(got.telemetry->argmax, want.telemetry->argmax, 0, 0, "argmax");
      expect_near(got.telemetry->allowed, want.telemetry->allowed, 0, 0, "allowed");
      for (std::size_t h = 0; h < got.telemetry->heads.size(); ++h) {
        expect_same_sums(got.telemetry->heads[h], want.telemetry->heads[h], tolerance);
      }
      if (testing::Test::HasFailure()) return;
    }
  }
}

TEST(StreamingTelemetry, ChangesNoBitOfAttentionAndIsTheSameForAnyNumberOfThreads) {
  Random random(5, Stream::statistics);
  const AttentionSizes s{.batch = 5, .heads = 4, .kv_heads = 2, .n_q = 131, .n_k = 131, .d_k = 8, .d_v = 8};
  const AttentionCase in(random, s, DType::f32);
  AttentionOptions o{.heads = 4, .kv_heads = 2, .mask = Mask::causal(), .dropout = 0.1};
  const auto results = [&](const Tensor& out) {
    for (Tensor t : {in.q, in.k, in.v}) t.clear_grad();
    backward(out, {.seed = out.value()});
    return std::vector<Array>{out.value(), in.q.grad().copy(), in.k.grad().copy(), in.v.grad().copy()};
  };
  const std::vector<Array> without = results(attention(in.q, in.k, in.v, o).out);
  o.telemetry = TelemetryOptions{.offsets = {-1, 0}, .keys = {0}};
  std::optional<Telemetry> first;
  for (const int count : {1, 2, 3, 4, 8}) {
    set_threads(count);
    const AttentionResult r = attention(in.q, in.k, in.v, o);
    const std::vector<Array> with = results(r.out);
    for (std::size_t i = 0; i < with.size(); ++i) EXPECT_TRUE(same_bits(with[i], without[i])) << i;
    if (!first) first = r.telemetry;
    for (std::size_t h = 0; h < 4; ++h) {
      EXPECT_EQ(r.telemetry->heads[h].entropy, first->heads[h].entropy);
      EXPECT_EQ(r.telemetry->heads[h].distance, first->heads[h].distance);
      EXPECT_EQ(r.telemetry->heads[h].offsets[0].mass, first->heads[h].offsets[0].mass);
    }
  }
  set_threads(0);
}

}  // namespace
}  // namespace headlab
