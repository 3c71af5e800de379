// Laws that attention obeys whatever the numbers, on random shapes.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "framework/ops/arithmetic.h"
#include "framework/ops/attention.h"
#include "framework/ops/reduction.h"
#include "framework/ops/rotary.h"
#include "framework/ops/shaping.h"
#include "tests/support/attention.h"

namespace headlab {
namespace {

constexpr int rounds = 40;

struct Draw {
  explicit Draw(std::uint64_t seed) : random(seed, Stream::statistics) {
    const std::int64_t kv = 1 + random.below(3);
    sizes = {.batch = 1 + random.below(3),
             .heads = kv * (1 + random.below(3)),
             .kv_heads = kv,
             .n_q = 1 + random.below(23),
             .n_k = 1 + random.below(23),
             .d_k = 1 + random.below(7),
             .d_v = 1 + random.below(7)};
    options = {.heads = sizes.heads, .kv_heads = sizes.kv_heads};
  }
  Array array(const Shape& shape) { return random_array(random, shape, DType::f64); }
  Array q() { return array({sizes.batch, sizes.n_q, sizes.heads * sizes.d_k}); }
  Array k() { return array({sizes.batch, sizes.n_k, sizes.kv_heads * sizes.d_k}); }
  Array v() { return array({sizes.batch, sizes.n_k, sizes.kv_heads * sizes.d_v}); }
  Array allow() {
    Array a({sizes.batch, 1, sizes.n_q, sizes.n_k}, DType::u8);
    for (auto& x : a.values<std::uint8_t>()) x = random.bernoulli(0.7) ? 1 : 0;
    return a;
  }

  Random random;
  AttentionSizes sizes;
  AttentionOptions options;
};

Array out_of(const Array& q, const Array& k, const Array& v, const AttentionOptions& o) {
  return attention(Tensor(q), Tensor(k), Tensor(v), o).out.value();
}

// The tokens of x [B, n, d] in another order.
Array reordered(const Array& x, const std::vector<std::int64_t>& order) {
  Array y(x.shape(), x.dtype());
  const std::int64_t n = x.dim(1), d = x.dim(2);
  for (std::int64_t b = 0; b < x.dim(0); ++b) {
    for (std::int64_t j = 0; j < n; ++j) {
      std::copy_n(x.data<double>() + (b * n + order[static_cast<std::size_t>(j)]) * d, d,
                  y.data<double>() + (b * n + j) * d);
    }
  }
  return y;
}

// Values of 1 make every output the sum of the row's weights.
TEST(AttentionLaws, WeightsOfARowAddUpToOneOrLessWithASink) {
  for (std::uint64_t seed = 0; seed < rounds; ++seed) {
    Draw d(seed);
    const AttentionSizes& s = d.sizes;
    const Mask mask = Mask::allow(d.allow());
    d.options.mask = mask;
    const Array q = d.q(), k = d.k();
    const Array ones = Array::full({s.batch, s.n_k, s.kv_heads * s.d_v}, 1, DType::f64);
    const Array plain = out_of(q, k, ones, d.options);
    d.options.sink = Tensor(d.array({s.heads}));
    const Array less = out_of(q, k, ones, d.options);
    const ResolvedMask resolved(mask, s.batch, s.heads, s.n_q, s.n_k, "test");
    for (std::int64_t i = 0; i < plain.size(); ++i) {
      const std::int64_t row = i / (s.heads * s.d_v);
      const bool any = resolved.allowed_keys(row / s.n_q, 0, row % s.n_q) > 0;
      ASSERT_NEAR(plain.at(i), any ? 1 : 0, 1e-14) << "seed " << seed;
      ASSERT_EQ(less.at(i) > 0, any) << "seed " << seed;
      ASSERT_LT(less.at(i), 1) << "seed " << seed;
    }
  }
}

TEST(AttentionLaws, KeysMayChangePlacesWithTheirValuesAndMask) {
  for (std::uint64_t seed = 0; seed < rounds; ++seed) {
    Draw d(seed);
    const AttentionSizes& s = d.sizes;
    std::vector<std::int64_t> order(static_cast<std::size_t>(s.n_k));
    std::iota(order.begin(), order.end(), 0);
    for (std::size_t i = order.size(); i > 1; --i)
      std::swap(order[i - 1], order[static_cast<std::size_t>(d.random.below(static_cast<std::int64_t>(i)))]);
    const Array q = d.q(), k = d.k(), v = d.v(), allow = d.allow();
    Array allow_there(allow.shape(), DType::u8);
    for (std::int64_t i = 0; i < allow.size(); ++i) {
      const std::int64_t from = i / s.n_k * s.n_k + order[static_cast<std::size_t>(i % s.n_k)];
      allow_there.data<std::uint8_t>()[i] = allow.data<std::uint8_t>()[from];
    }
    d.options.mask = Mask::allow(allow);
    const Array here = out_of(q, k, v, d.options);
    d.options.mask = Mask::allow(allow_there);
    ASSERT_TRUE(close(out_of(q, reordered(k, order), reordered(v, order), d.options), here, 1e-13)) << seed;
  }
}

TEST(AttentionLaws, EqualKeysGiveTheMeanOfAllowedValues) {
  for (std::uint64_t seed = 0; seed < rounds; ++seed) {
    Draw d(seed);
    const AttentionSizes& s = d.sizes;
    Array k = d.k();
    const std::int64_t width = k.dim(2);
    for (std::int64_t row = 0; row < s.batch * s.n_k; ++row)
      std::copy_n(k.data<double>() + row / s.n_k * s.n_k * width, width, k.data<double>() + row * width);
    const Array v = d.v();
    d.options.mask = Mask::causal();
    const Array out = out_of(d.q(), k, v, d.options);
    for (std::int64_t i = 0; i < out.size(); ++i) {
      const std::int64_t column = i % (s.heads * s.d_v), row = i / (s.heads * s.d_v);
      const std::int64_t head = column / s.d_v / (s.heads / s.kv_heads);
      const std::int64_t count = std::max<std::int64_t>(row % s.n_q + s.n_k - s.n_q + 1, 0);
      double total = 0;
      for (std::int64_t j = 0; j < count; ++j)
        total += v.at((row / s.n_q * s.n_k + j) * s.kv_heads * s.d_v + head * s.d_v + column % s.d_v);
      ASSERT_NEAR(out.at(i), count == 0 ? 0 : total / static_cast<double>(count), 1e-13) << "seed " << seed;
    }
  }
}

TEST(AttentionLaws, ALargeSoftcapIsNone) {
  for (std::uint64_t seed = 0; seed < rounds; ++seed) {
    Draw d(seed);
    const Array q = d.q(), k = d.k(), v = d.v();
    const Array plain = out_of(q, k, v, d.options);
    double before = HUGE_VAL;
    for (const double cap : {1e1, 1e3, 1e5}) {  // tanh x = x − x³/3 …: the error falls with the square
      d.options.softcap = cap;
      const Array capped = out_of(q, k, v, d.options);
      double most = 0;
      for (std::int64_t i = 0; i < plain.size(); ++i)
        most = std::max(most, std::abs(capped.at(i) - plain.at(i)));
      ASSERT_LE(most, std::max(before * 1e-3, 1e-14)) << "seed " << seed << ", cap " << cap;
      before = most;
    }
    ASSERT_LT(before, 1e-8) << "seed " << seed;
  }
}

TEST(AttentionLaws, OneNumberForAllScoresOfARowChangesNothing) {
  for (std::uint64_t seed = 0; seed < rounds; ++seed) {
    Draw d(seed);
    const AttentionSizes& s = d.sizes;
    const Array q = d.q(), k = d.k(), v = d.v();
    const Array bias = d.array({s.batch, s.heads, s.n_q, s.n_k});
    Array shifted = bias.copy();
    for (std::int64_t row = 0; row < s.batch * s.heads * s.n_q; ++row) {
      const double shift = 30 * d.random.normal();
      for (std::int64_t j = 0; j < s.n_k; ++j) shifted.data<double>()[row * s.n_k + j] += shift;
    }
    d.options.mask = Mask::causal() & Mask::bias(Tensor(bias));
    const Array plain = out_of(q, k, v, d.options);
    d.options.mask = Mask::causal() & Mask::bias(Tensor(shifted));
    ASSERT_TRUE(close(out_of(q, k, v, d.options), plain, 1e-12)) << seed;
  }
}

TEST(AttentionLaws, RotaryPositionsMatterByDistanceAlone) {
  for (std::uint64_t seed = 0; seed < rounds; ++seed) {
    Draw d(seed);
    AttentionSizes& s = d.sizes;
    s.d_k = 2 + 2 * d.random.below(4);
    const Array q = d.q(), k = d.k(), v = d.v();
    const RotaryPairing pairing = seed % 2 == 0 ? RotaryPairing::halves : RotaryPairing::neighbours;
    const auto at = [&](const Array& x, std::int64_t heads, std::int64_t first) {
      return rotary(Tensor(x), {.heads = heads,
                                .head_size = s.d_k,
                                .width = 2 * (1 + static_cast<std::int64_t>(seed) % (s.d_k / 2)),
                                .base = 100,
                                .pairing = pairing,
                                .first_position = first})
          .value();
    };
    const auto from = [&](std::int64_t queries, std::int64_t keys) {
      return out_of(at(q, s.heads, queries), at(k, s.kv_heads, keys), v, d.options);
    };
    const Array here = from(2, 5);
    ASSERT_TRUE(close(from(1002, 1005), here, 1e-10)) << seed;
    if (s.n_k > 1) {
      ASSERT_FALSE(close(from(2, 3), here, 1e-6)) << seed;
    }
  }
}

}  // namespace
}  // namespace headlab
