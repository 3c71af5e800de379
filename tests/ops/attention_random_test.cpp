// The fused operation against the composite that defines it, on random configurations.
#include <algorithm>
#include <limits>

#include "framework/autograd/gradcheck.h"
#include "framework/core/parallel.h"
#include "framework/ops/arithmetic.h"
#include "framework/ops/attention.h"
#include "framework/ops/reduction.h"
#include "framework/ops/shaping.h"
#include "tests/support/attention.h"

namespace headlab {
namespace {

struct Configuration {
  AttentionSizes sizes;
  AttentionOptions options;
  std::vector<Tensor> extra;  // what else wants gradients: bias, offset bias, sink
  std::string text;           // the line that makes it again
  bool packs() const { return sizes.n_q == sizes.n_k && sizes.d_k == sizes.d_v; }
};

void set(Array& a, std::int64_t i, double value) {
  if (a.dtype() == DType::f64) {
    a.data<double>()[i] = value;
  } else {
    a.data<float>()[i] = static_cast<float>(value);
  }
}

// A prefix, or several sequences in a row.
Mask draw_sequences(Random& random, const AttentionSizes& s) {
  if (random.bernoulli(0.5)) {
    std::vector<std::int64_t> lengths;
    for (std::int64_t b = 0; b < s.batch; ++b) lengths.push_back(random.below(s.n_k + 1));
    return Mask::prefix(lengths);
  }
  Array ids({random.bernoulli(0.5) ? s.batch : 1, s.n_k}, DType::i64);
  std::int64_t id = 0;
  for (std::int64_t i = 0; i < ids.size(); ++i) {
    id = i % s.n_k == 0 ? 0 : id + (random.bernoulli(0.2) ? 1 : 0);
    ids.data<std::int64_t>()[i] = id;
  }
  return Mask::segments(ids);
}

Configuration draw_configuration(std::uint64_t seed, DType dtype) {
  Random random(seed, Stream::statistics);
  Configuration c;
  const std::int64_t kv = 1 + random.below(3);
  const std::int64_t group = 1 + random.below(3);
  // Mostly within one tile and one vector, else over the edges of several.
  const std::int64_t most = random.bernoulli(0.85) ? 20 : 200;
  const std::int64_t widest = random.bernoulli(0.8) ? 9 : 70;
  c.sizes = {.batch = random.below(4),
             .heads = kv * group,
             .kv_heads = kv,
             .n_q = random.below(most),
             .n_k = random.below(most),
             .d_k = 1 + random.below(widest),
             .d_v = 1 + random.below(widest)};
  AttentionSizes& s = c.sizes;
  if (random.bernoulli(0.2)) {  // one projection can hold all three
    s.n_k = s.n_q;
    s.d_v = s.d_k;
  }
  c.options.heads = s.heads;
  c.options.kv_heads = s.kv_heads;
  if (random.bernoulli(0.3)) c.options.scale = random.uniform();
  Mask mask;
  if (random.bernoulli(0.4))
    mask = mask & (random.bernoulli(0.8) ? Mask::causal() : Mask::causal_upper_left());
  if (mask.blocks_nothing() && random.bernoulli(0.3)) mask = draw_sequences(random, s);
  if (random.bernoulli(0.3)) mask = mask & Mask::window(1 + random.below(6));
  if (random.bernoulli(0.3)) {
    std::vector<std::int64_t> lengths;
    for (std::int64_t b = 0; b < s.batch; ++b) lengths.push_back(random.below(s.n_k + 1));
    mask = mask & Mask::key_lengths(lengths);
  }
  if (random.bernoulli(0.3)) {
    Array allow({random.bernoulli(0.5) ? s.batch : 1, random.bernoulli(0.5) ? s.heads : 1, s.n_q, s.n_k},
                DType::u8);
    for (auto& x : allow.values<std::uint8_t>()) x = random.bernoulli(0.6) ? 1 : 0;
    mask = mask & Mask::allow(allow);
  }
  if (random.bernoulli(0.3)) {
    const Shape shape{random.bernoulli(0.5) ? s.batch : 1, random.bernoulli(0.5) ? s.heads : 1, s.n_q, s.n_k};
    Array bias = random_array(random, shape, dtype);
    if (random.bernoulli(0.3)) {
      for (std::int64_t i = 0; i < bias.size(); ++i) {
        if (random.bernoulli(0.2)) set(bias, i, -std::numeric_limits<double>::infinity());
      }
    }
    c.extra.emplace_back(bias, true);
    mask = mask & Mask::bias(c.extra.back());
  }
  if (random.bernoulli(0.2)) c.options.softcap = 0.5 + random.uniform();
  if (random.bernoulli(0.2)) {
    const Shape shape{s.heads, std::max<std::int64_t>(s.n_q + s.n_k - 1, 0)};
    c.extra.emplace_back(random_array(random, shape, dtype), true);
    c.options.offset_bias = c.extra.back();
  }
  if (random.bernoulli(0.2)) {
    c.extra.emplace_back(random_array(random, {s.heads}, dtype), true);
    c.options.sink = c.extra.back();
  }
  if (random.bernoulli(0.1)) {
    Array valid({s.batch, s.n_k}, DType::u8);
    for (auto& x : valid.values<std::uint8_t>()) x = random.bernoulli(0.7) ? 1 : 0;
    mask = mask & Mask::valid_keys(valid);
  }
  if (random.bernoulli(0.3)) {
    c.options.dropout = 0.9 * random.uniform();  // kept weights, and their rounding, grow by 1 / (1 − p)
    c.options.dropout_key = {seed, 5, 0};
  }
  c.options.mask = mask;
  c.text = "draw_configuration(" + std::to_string(seed) + ", DType::" + std::string(name_of(dtype)) + ")";
  return c;
}

enum class Way { composite, streaming, packed };

// The output and all gradients.
std::vector<Array> results_of(const Configuration& c, const AttentionCase& in, Way way,
                              const Array& seed_out) {
  for (Tensor t : {in.q, in.k, in.v}) t.clear_grad();
  for (Tensor t : c.extra) t.clear_grad();
  const AttentionResult r = way == Way::composite   ? composite::attention(in.q, in.k, in.v, c.options)
                            : way == Way::streaming ? attention(in.q, in.k, in.v, c.options)
                                                    : attention(concat({in.q, in.k, in.v}, 2), c.options);
  backward(sum(mul(r.out, Tensor(seed_out))));
  std::vector<Array> all{r.out.value(), in.q.grad().copy(), in.k.grad().copy(), in.v.grad().copy()};
  for (const Tensor& t : c.extra) all.push_back(t.grad().copy());
  return all;
}

constexpr std::uint64_t shards = 8, configurations = 2000;

class AttentionAgainstComposite : public testing::TestWithParam<std::uint64_t> {};
INSTANTIATE_TEST_SUITE_P(Shards, AttentionAgainstComposite, testing::Range(std::uint64_t{0}, shards));

TEST_P(AttentionAgainstComposite, RandomConfigurations) {
  int packed = 0;
  for (std::uint64_t seed = GetParam(); seed < configurations; seed += shards) {
    for (const DType dtype : {DType::f64, DType::f32}) {
      const Configuration c = draw_configuration(seed, dtype);
      SCOPED_TRACE(c.text);
      const AttentionSizes& s = c.sizes;
      Random random(seed, Stream::evaluation);
      const AttentionCase in(random, s, dtype);
      const Array seed_out = random_array(random, {s.batch, s.n_q, s.heads * s.d_v}, dtype);
      const auto wanted = results_of(c, in, Way::composite, seed_out);
      const auto streaming = results_of(c, in, Way::streaming, seed_out);
      for (std::size_t i = 0; i < streaming.size(); ++i) {
        expect_close(streaming[i], wanted[i], dtype == DType::f64 ? 1e-11 : 2e-5,
                     "result " + std::to_string(i));
      }
      if (c.packs()) {
        ++packed;
        const auto one = results_of(c, in, Way::packed, seed_out);
        for (std::size_t i = 0; i < one.size(); ++i) EXPECT_TRUE(same_bits(one[i], streaming[i])) << i;
      }
      if (HasFailure()) return;
    }
  }
  EXPECT_GT(packed, 50);
}

TEST(Attention, GradientsAgreeWithDifferences) {
  Random random(1, Stream::statistics);
  const AttentionSizes s{.batch = 2, .heads = 4, .kv_heads = 2, .n_q = 3, .n_k = 5, .d_k = 2, .d_v = 3};
  const AttentionCase in(random, s, DType::f64);
  const Tensor bias(random_array(random, {1, 4, 3, 5}, DType::f64), true);
  const auto f = [](std::span<const Tensor> x) {
    const Mask mask = Mask::causal() & Mask::bias(x[3]);
    return attention(x[0], x[1], x[2], {.heads = 4, .kv_heads = 2, .mask = mask}).out;
  };
  const GradcheckResult result = gradcheck(f, {in.q, in.k, in.v, bias});
  EXPECT_TRUE(result) << result.message;
}

TEST(Attention, OneTensorAsQueryKeyAndValue) {
  Random random(2, Stream::statistics);
  const Tensor x(random_array(random, {2, 5, 6}, DType::f64), true);
  const auto f = [](std::span<const Tensor> in) {
    return attention(in[0], in[0], in[0], {.heads = 3, .mask = Mask::causal()}).out;
  };
  const GradcheckResult result = gradcheck(f, {x});
  EXPECT_TRUE(result) << result.message;
}

TEST(Attention, PackedProjectionIsTheSameAsThree) {
  Random random(3, Stream::statistics);
  const std::int64_t d = 3;
  const Tensor qkv(random_array(random, {2, 5, (4 + 2 * 2) * d}, DType::f32), true);
  const AttentionOptions o{.heads = 4, .kv_heads = 2, .mask = Mask::causal()};
  const Tensor packed = attention(qkv, o).out;
  backward(sum(mul(packed, packed)));
  const Array packed_gradient = qkv.grad().copy();
  Tensor again = qkv;
  again.clear_grad();
  const Tensor q = slice(qkv, 2, 0, 4 * d);
  const Tensor k = slice(qkv, 2, 4 * d, 6 * d);
  const Tensor v = slice(qkv, 2, 6 * d, 8 * d);
  const Tensor three = attention(q, k, v, o).out;
  EXPECT_TRUE(same_bits(packed.value(), three.value()));
  backward(sum(mul(three, three)));
  EXPECT_TRUE(same_bits(packed_gradient, qkv.grad()));
}

TEST(Attention, SameBitsForAnyNumberOfThreads) {
  Random random(4, Stream::statistics);
  const AttentionSizes s{.batch = 8, .heads = 4, .kv_heads = 2, .n_q = 67, .n_k = 67, .d_k = 16, .d_v = 16};
  const AttentionCase in(random, s, DType::f32);
  std::vector<Array> first;
  for (const int count : {1, 2, 3, 4, 8}) {
    set_threads(count);
    for (Tensor t : {in.q, in.k, in.v}) t.clear_grad();
    const Tensor out =
        attention(
            in.q, in.k, in.v,
            {.heads = 4, .kv_heads = 2, .mask = Mask::causal(), .dropout = 0.1, .dropout_key = {1, 1, 0}})
            .out;
    backward(sum(mul(out, out)));
    const std::vector<Array> all{out.value(), in.q.grad().copy(), in.k.grad().copy(), in.v.grad().copy()};
    if (first.empty()) first = all;
    for (std::size_t i = 0; i < all.size(); ++i) EXPECT_TRUE(same_bits(all[i], first[i]));
  }
  set_threads(0);
}

}  // namespace
}  // namespace headlab
