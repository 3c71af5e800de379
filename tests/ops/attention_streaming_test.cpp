// What the streaming kernel promises beside the right numbers: equal bits, skipped keys, no NaN from what is
// blocked, over the edges of its tiles and blocks.
#include <limits>

#include "framework/core/parallel.h"
#include "framework/ops/arithmetic.h"
#include "framework/ops/attention.h"
#include "framework/ops/reduction.h"
#include "framework/ops/shaping.h"
#include "tests/support/attention.h"

namespace headlab {
namespace {

constexpr float infinite = std::numeric_limits<float>::infinity();
constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();

TEST(StreamingAttention, ARowDoesNotDependOnTheQueriesBesideIt) {
  Random random(11, Stream::statistics);
  const AttentionSizes s{.batch = 1, .heads = 2, .kv_heads = 1, .n_q = 300, .n_k = 300, .d_k = 7, .d_v = 5};
  const AttentionCase in(random, s, DType::f32);
  const Tensor sink(random_array(random, {2}, DType::f32));
  for (const Mask& mask : {Mask::causal(), Mask::causal() & Mask::window(150)}) {
    const AttentionOptions o{.heads = 2, .kv_heads = 1, .mask = mask, .sink = sink};
    const Array whole = attention(in.q, in.k, in.v, o).out.value();
    for (const std::int64_t i : {0, 1, 63, 64, 127, 128, 129, 256, 299}) {
      const Tensor q = slice(in.q, 1, i, i + 1);
      const Tensor k = slice(in.k, 1, 0, i + 1);
      const Tensor v = slice(in.v, 1, 0, i + 1);
      EXPECT_TRUE(same_bits(attention(q, k, v, o).out.value(),
                            whole.reshape({300, 10}).range(i, i + 1).reshape({1, 1, 10})));
    }
  }
}

// A range of keys lets the kernel leave out parts of a tile, the same mask key by key doesn't.
TEST(StreamingAttention, PartsOfTilesThatAreLeftOutChangeNoBit) {
  Random random(17, Stream::statistics);
  for (const std::int64_t tokens : {1, 15, 33, 77, 150, 300}) {
    const AttentionSizes s{
        .batch = 2, .heads = 2, .kv_heads = 1, .n_q = tokens, .n_k = tokens, .d_k = 7, .d_v = 19};
    const AttentionCase in(random, s, DType::f32);
    for (const std::int64_t window : {300, 37, 5}) {
      Array allowed({tokens, tokens}, DType::u8);
      for (std::int64_t i = 0; i < tokens; ++i) {
        for (std::int64_t j = 0; j < tokens; ++j) {
          allowed.data<std::uint8_t>()[i * tokens + j] = j <= i && i - j < window ? 1 : 0;
        }
      }
      std::vector<Array> first;
      for (const Mask& mask : {Mask::allow(allowed), Mask::causal() & Mask::window(window)}) {
        for (Tensor t : {in.q, in.k, in.v}) t.clear_grad();
        const Tensor out = attention(in.q, in.k, in.v, {.heads = 2, .kv_heads = 1, .mask = mask}).out;
        backward(sum(mul(out, out)));
        std::vector<Array> all{out.value()};
        for (const Tensor& t : {in.q, in.k, in.v}) all.push_back(t.grad().copy());
        if (first.empty()) first = all;
        for (std::size_t i = 0; i < all.size(); ++i) EXPECT_TRUE(same_bits(all[i], first[i])) << tokens;
      }
    }
  }
}

TEST(StreamingAttention, SameBitsForAnyNumberOfThreadsWhereKeysAreGrouped) {
  Random random(12, Stream::statistics);
  const AttentionSizes s{.batch = 1, .heads = 2, .kv_heads = 1, .n_q = 515, .n_k = 700, .d_k = 32, .d_v = 32};
  const AttentionCase in(random, s, DType::f32);
  const Tensor bias(random_array(random, {2, 515 + 700 - 1}, DType::f32), true);
  const Tensor sink(random_array(random, {2}, DType::f32), true);
  std::vector<Array> first;
  for (const int count : {1, 2, 3, 4, 8, 8}) {
    set_threads(count);
    for (Tensor t : {in.q, in.k, in.v, bias, sink}) t.clear_grad();
    const Tensor out =
        attention(in.q, in.k, in.v,
                  {.heads = 2, .kv_heads = 1, .mask = Mask::causal(), .offset_bias = bias, .sink = sink})
            .out;
    backward(sum(mul(out, out)));
    std::vector<Array> all{out.value()};
    for (const Tensor& t : {in.q, in.k, in.v, bias, sink}) all.push_back(t.grad().copy());
    if (first.empty()) first = all;
    for (std::size_t i = 0; i < all.size(); ++i) EXPECT_TRUE(same_bits(all[i], first[i]));
  }
  set_threads(0);
}

TEST(StreamingAttention, GroupsOfKeysGiveTheCompositesGradients) {
  Random random(13, Stream::statistics);
  const AttentionSizes s{.batch = 1, .heads = 2, .kv_heads = 2, .n_q = 515, .n_k = 613, .d_k = 37, .d_v = 31};
  const AttentionCase in(random, s, DType::f64);
  const Array seed = random_array(random, {1, 515, 62}, DType::f64);
  std::vector<Array> wanted;
  for (const bool streams : {false, true}) {
    for (Tensor t : {in.q, in.k, in.v}) t.clear_grad();
    const AttentionOptions o{.heads = 2, .mask = Mask::causal()};
    const Tensor out =
        streams ? attention(in.q, in.k, in.v, o).out : composite::attention(in.q, in.k, in.v, o).out;
    backward(out, {.seed = seed});
    const std::vector<Array> all{out.value(), in.q.grad().copy(), in.k.grad().copy(), in.v.grad().copy()};
    if (!streams) wanted = all;
    for (std::size_t i = 0; i < all.size(); ++i) {
      expect_close(all[i], wanted[i], 1e-11, "result " + std::to_string(i));
    }
  }
}

// Rows of several heads lie apart, and a long sequence is worth copies that put them side by side.
TEST(StreamingAttention, AHeadAmongOthersHasTheBitsOfTheHeadAlone) {
  Random random(18, Stream::statistics);
  constexpr std::int64_t heads = 3, tokens = 530;
  const AttentionSizes s{
      .batch = 1, .heads = heads, .kv_heads = heads, .n_q = tokens, .n_k = tokens, .d_k = 3, .d_v = 2};
  const AttentionCase in(random, s, DType::f32);
  const auto results = [](const Tensor& q, const Tensor& k, const Tensor& v,
                          const AttentionOptions& options) {
    const Tensor out = attention(q, k, v, options).out;
    backward(sum(mul(out, out)));
    return std::vector<Array>{out.value(), q.grad().copy(), k.grad().copy(), v.grad().copy()};
  };
  for (const Mask& mask : {Mask(), Mask::causal(), Mask::causal() & Mask::window(300)}) {
    for (Tensor t : {in.q, in.k, in.v}) t.clear_grad();
    const std::vector<Array> together = results(in.q, in.k, in.v, {.heads = heads, .mask = mask});
    for (std::int64_t h = 0; h < heads; ++h) {
      const auto head_of = [&](const Array& all) {
        const Tensor split = swap_axes(reshape(Tensor(all), {tokens, heads, all.dim(2) / heads}), 0, 1);
        return slice(split, 0, h, h + 1).value().copy();
      };
      const Tensor q(head_of(in.q.value()), true), k(head_of(in.k.value()), true),
          v(head_of(in.v.value()), true);
      const std::vector<Array> alone = results(q, k, v, {.heads = 1, .mask = mask});
      for (std::size_t i = 0; i < alone.size(); ++i) {
        EXPECT_TRUE(same_bits(alone[i], head_of(together[i]))) << "head " << h << ", result " << i;
      }
    }
  }
}

// Keys and values that nobody may see hold numbers, or NaN and infinity: no bit differs.
TEST(StreamingAttention, BlockedKeysOfAnyTileChangeNoBit) {
  Random random(14, Stream::statistics);
  const AttentionSizes s{.batch = 2, .heads = 2, .kv_heads = 2, .n_q = 140, .n_k = 300, .d_k = 5, .d_v = 6};
  const AttentionCase in(random, s, DType::f32);
  const Mask mask = Mask::key_lengths({130, 299}) & Mask::causal();
  std::vector<Array> first;
  for (const float filler : {0.0F, 1e30F, infinite, not_a_number}) {
    Array k = in.k.value().copy(), v = in.v.value().copy();
    for (std::int64_t j = 130; j < 300; ++j) {
      std::fill_n(k.data<float>() + j * 10, 10, filler);
      std::fill_n(v.data<float>() + j * 12, 12, filler);
    }
    std::fill_n(k.data<float>() + (300 + 299) * 10, 10, filler);
    std::fill_n(v.data<float>() + (300 + 299) * 12, 12, filler);
    Tensor q = in.q;
    q.clear_grad();
    const Tensor keys(k, true), values(v, true);
    const Tensor out = attention(q, keys, values, {.heads = 2, .mask = mask}).out;
    backward(sum(mul(out, out)));
    const std::vector<Array> all{out.value(), q.grad().copy(), keys.grad().copy(), values.grad().copy()};
    if (first.empty()) first = all;
    for (std::size_t i = 0; i < all.size(); ++i) EXPECT_TRUE(same_bits(all[i], first[i]));
    for (std::int64_t j = 130 * 10; j < 300 * 10; ++j) ASSERT_EQ(keys.grad().at(j), 0);
    for (std::int64_t j = 130 * 12; j < 300 * 12; ++j) ASSERT_EQ(values.grad().at(j), 0);
  }
}

// A key that some queries may see and others not: only those that see it become NaN.
TEST(StreamingAttention, ANonFiniteKeyReachesOnlyThoseWhoSeeIt) {
  Random random(15, Stream::statistics);
  const AttentionSizes s{.batch = 1, .heads = 1, .kv_heads = 1, .n_q = 200, .n_k = 200, .d_k = 4, .d_v = 4};
  const AttentionCase in(random, s, DType::f32);
  const Array clean = attention(in.q, in.k, in.v, {.mask = Mask::causal()}).out.value();
  for (const bool in_values : {false, true}) {
    Array broken = (in_values ? in.v : in.k).value().copy();
    broken.data<float>()[150 * 4 + 1] = not_a_number;
    const Array out = (in_values ? attention(in.q, in.k, Tensor(broken), {.mask = Mask::causal()})
                                 : attention(in.q, Tensor(broken), in.v, {.mask = Mask::causal()}))
                          .out.value();
    EXPECT_TRUE(same_bits(out.reshape({200, 4}).range(0, 150), clean.reshape({200, 4}).range(0, 150)));
    for (std::int64_t i = 150; i < 200; ++i) EXPECT_TRUE(std::isnan(out.at(i * 4 + 1))) << i;
  }
}

// Pieces of uneven length, each with attention inside, on more threads than there are processors.
TEST(StreamingAttention, SameBitsForAnyThreadsInsideAnotherLoop) {
  Random random(18, Stream::statistics);
  std::vector<AttentionCase> cases;
  for (std::int64_t piece = 0; piece < 32; ++piece) {
    const std::int64_t n = 1 + piece * 37 % 150;
    cases.emplace_back(random, AttentionSizes{2, 2, 1, n, n, 16, 16}, DType::f32);
  }
  const NoGrad no_grad;
  const auto run = [&] {
    std::vector<Array> all(cases.size());
    parallel_for(std::ssize(cases), 1, {.flops = 1e9}, [&](std::int64_t begin, std::int64_t end) {
      for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i) {
        const NoGrad inner;
        const AttentionCase& c = cases[i];
        all[i] = attention(c.q, c.k, c.v, {.heads = 2, .kv_heads = 1, .mask = Mask::causal()}).out.value();
      }
    });
    return all;
  };
  set_threads(1);
  const std::vector<Array> want = run();
  for (const int count : {4, 8}) {
    set_threads(count);
    for (int repeat = 0; repeat < 20; ++repeat) {
      const std::vector<Array> got = run();
      for (std::size_t i = 0; i < got.size(); ++i) EXPECT_TRUE(same_bits(got[i], want[i])) << i;
    }
  }
  set_threads(0);
}

// Non-finite keys that nobody sees under a softcap, and a non-finite query that sees nothing.
TEST(StreamingAttention, WhatIsBlockedReachesNoGradientEitherWay) {
  Random random(17, Stream::statistics);
  const AttentionSizes s{.batch = 1, .heads = 1, .kv_heads = 1, .n_q = 70, .n_k = 40, .d_k = 4, .d_v = 4};
  const AttentionCase in(random, s, DType::f32);
  Array allow({70, 40}, DType::u8);
  for (std::int64_t i = 0; i < 70; ++i) {
    for (std::int64_t j = 0; j < 40; ++j) {
      allow.data<std::uint8_t>()[i * 40 + j] = i != 66 && j != 17 && (i + j) % 3 != 0 ? 1 : 0;
    }
  }
  std::vector<Array> first;
  for (const float filler : {0.0F, infinite, not_a_number}) {
    Array q = in.q.value().copy(), k = in.k.value().copy(), v = in.v.value().copy();
    std::fill_n(q.data<float>() + 66 * 4, 4, filler);
    std::fill_n(k.data<float>() + 17 * 4, 4, filler);
    std::fill_n(v.data<float>() + 17 * 4, 4, filler);
    const Tensor queries(q, true), keys(k, true), values(v, true);
    const Tensor out = attention(queries, keys, values, {.softcap = 2, .mask = Mask::allow(allow)}).out;
    backward(sum(mul(out, out)));
    const std::vector<Array> all{out.value(), queries.grad().copy(), keys.grad().copy(),
                                 values.grad().copy()};
    if (first.empty()) first = all;
    for (std::size_t i = 0; i < all.size(); ++i) EXPECT_TRUE(same_bits(all[i], first[i])) << i;
  }
}

TEST(StreamingAttention, ABiasChangedInPlaceBeforeBackwardIsAnError) {
  Random random(16, Stream::statistics);
  const AttentionCase in(random, {.batch = 1, .heads = 1, .kv_heads = 1, .n_q = 3, .n_k = 3}, DType::f32);
  Tensor bias(Array::zeros({3, 3}), true);
  const Tensor out = attention(in.q, in.k, in.v, {.mask = Mask::bias(bias)}).out;
  bias.change().data<float>()[0] = 1;
  EXPECT_THROW(backward(sum(out)), Error);
}

}  // namespace
}  // namespace headlab
