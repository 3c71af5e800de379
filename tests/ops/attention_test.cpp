#include "framework/ops/attention.h"

#include <limits>

#include "framework/autograd/backward.h"
#include "framework/autograd/gradcheck.h"
#include "framework/core/parallel.h"
#include "framework/core/random.h"
#include "framework/ops/arithmetic.h"
#include "framework/ops/reduction.h"
#include "tests/support/attention.h"
#include "tests/support/errors.h"
#include "tests/support/goldens.h"

namespace headlab {
namespace {

constexpr float nan_value = std::numeric_limits<float>::quiet_NaN();
constexpr float inf_value = std::numeric_limits<float>::infinity();

// One head, zero scores: every allowed key gets the same weight.
std::vector<float> mean_of_allowed(std::int64_t batch, std::int64_t n_q, const std::vector<float>& v,
                                   const Mask& mask) {
  const auto n_k = static_cast<std::int64_t>(v.size());
  Array values({batch, n_k, 1});
  for (std::int64_t b = 0; b < batch; ++b) std::copy(v.begin(), v.end(), values.data<float>() + b * n_k);
  const AttentionResult result = attention(Tensor::zeros({batch, n_q, 1}), Tensor::zeros({batch, n_k, 1}),
                                           Tensor(values), {.mask = mask});
  const auto out = result.out.value().values<float>();
  return {out.begin(), out.end()};
}

TEST(Attention, QueryWithoutAllowedKeysIsZeroEverywhere) {
  const Array rows = Array::of<float>({1, 3, 2}, {1, 0, 0, 1, 1, 1});
  const Mask mask = Mask::allow(Array::of<std::uint8_t>({3, 3}, {1, 0, 0, 0, 0, 0, 1, 1, 1}));
  for (const bool composite_path : {false, true}) {
    SCOPED_TRACE(composite_path ? "composite" : "fused");
    const Tensor q(rows.copy(), true);
    const Tensor k(rows.copy(), true);
    const Tensor v(Array::of<float>({1, 3, 2}, {1, 2, 3, 4, 5, 6}), true);
    const AttentionResult result =
        composite_path ? composite::attention(q, k, v, {.mask = mask}) : attention(q, k, v, {.mask = mask});
    if (composite_path) {
      expect_close(result.weights.value(),
                   Array::of<float>({1, 1, 3, 3}, {1, 0, 0, 0, 0, 0, 0.248255F, 0.248255F, 0.503490F}), 1e-5,
                   "weights");
    }
    expect_close(result.out.value(), Array::of<float>({1, 3, 2}, {1, 2, 0, 0, 3.510470F, 4.510470F}), 1e-5,
                 "out");
    backward(sum(result.out));
    expect_close(
        v.grad(),
        Array::of<float>({1, 3, 2}, {1.248255F, 1.248255F, 0.248255F, 0.248255F, 0.503490F, 0.503490F}), 1e-5,
        "dV");
    expect_close(q.grad(), Array::of<float>({1, 3, 2}, {0, 0, 0, 0, 0.179219F, 0.881390F}), 1e-5, "dQ");
    expect_close(
        k.grad(),
        Array::of<float>({1, 3, 2}, {-0.881390F, -0.881390F, -0.179219F, -0.179219F, 1.060609F, 1.060609F}),
        1e-5, "dK");
    for (const std::int64_t c : {2, 3}) {  // exactly, not nearly
      EXPECT_EQ(result.out.value().at(c), 0);
      EXPECT_EQ(q.grad().at(c), 0);
    }
  }
}

TEST(Attention, TrueMeansMayAttend) {
  const Mask mask = Mask::allow(Array::of<std::uint8_t>({2, 2}, {1, 0, 1, 1}));
  EXPECT_EQ(mean_of_allowed(1, 2, {1, 3}, mask), (std::vector<float>{1, 2}));
}

TEST(Attention, AdditiveMasksAreAdded) {
  const auto with_bias = [](float a, float b) {
    return mean_of_allowed(1, 1, {0, 4}, Mask::bias(Tensor::of<float>({1, 2}, {a, b})))[0];
  };
  EXPECT_NEAR(with_bias(0, std::log(3.0F)), 3, 1e-5);
  EXPECT_NEAR(with_bias(1, 2), 2.924234, 1e-5);
  EXPECT_EQ(with_bias(0, -inf_value), 0);
}

TEST(Attention, CausalAlignsTheLastQueryWithTheLastKey) {
  EXPECT_EQ(mean_of_allowed(1, 2, {1, 2, 3, 4, 5}, Mask::causal()), (std::vector<float>{2.5, 3}));
  EXPECT_EQ(mean_of_allowed(1, 1, {1, 2, 3, 4, 5}, Mask::causal()), (std::vector<float>{3}));
  EXPECT_EQ(mean_of_allowed(1, 5, {1, 2}, Mask::causal()), (std::vector<float>{0, 0, 0, 1, 1.5}));
  EXPECT_EQ(mean_of_allowed(1, 2, {1, 2, 3}, Mask::causal_upper_left()), (std::vector<float>{1, 1.5}));
  EXPECT_EQ(mean_of_allowed(1, 3, {1, 2, 3}, Mask::causal() & Mask::window(2)),
            (std::vector<float>{1, 1.5, 2.5}));
}

TEST(Attention, CausalAndPaddingJoin) {
  const Mask right = Mask::causal() & Mask::key_lengths({4, 2});
  EXPECT_EQ(mean_of_allowed(2, 4, {1, 2, 3, 4}, right),
            (std::vector<float>{1, 1.5, 2, 2.5, 1, 1.5, 1.5, 1.5}));
  const Mask left = Mask::causal() & Mask::valid_keys(Array::of<std::uint8_t>({1, 4}, {0, 0, 1, 1}));
  EXPECT_EQ(mean_of_allowed(1, 4, {1, 2, 3, 4}, left), (std::vector<float>{0, 0, 3, 3.5}));
}

TEST(Attention, BlockedContentChangesNoBit) {
  const Mask mask = Mask::allow(Array::of<std::uint8_t>({1, 2}, {1, 0}));
  for (const float x : {2.0F, 1e30F, inf_value, nan_value}) {
    EXPECT_EQ(mean_of_allowed(1, 1, {1, x}, mask), (std::vector<float>{1}));
  }
}

TEST(Attention, BlockedNonFiniteKeysAndValuesGetZeroGradients) {
  // Key 4 is blocked for all queries: everything else must come out bit-equal to a run where it is harmless.
  const auto run = [](float poison) {
    Random random(3, Stream::statistics);
    AttentionCase c(random, {.batch = 2, .heads = 3, .kv_heads = 3, .n_q = 5, .n_k = 5, .d_k = 7, .d_v = 11},
                    DType::f32);
    for (const Tensor* t : {&c.k, &c.v}) {
      Array value = t->value();
      const std::int64_t width = value.dim(2);
      for (std::int64_t b = 0; b < 2; ++b)
        std::fill_n(value.data<float>() + (b * 5 + 4) * width, width, poison);
    }
    const Mask mask = Mask::key_lengths({4, 4}) & Mask::causal();
    const Tensor out = attention(c.q, c.k, c.v, {.heads = 3, .mask = mask}).out;
    backward(sum(mul(out, out)));
    return std::vector<Array>{out.value(), c.q.grad(), c.k.grad(), c.v.grad()};
  };
  const auto harmless = run(0);
  for (const float poison : {inf_value, nan_value, 1e30F}) {
    const auto poisoned = run(poison);
    for (std::size_t i = 0; i < harmless.size(); ++i) EXPECT_TRUE(same_bits(poisoned[i], harmless[i]));
  }
}

TEST(Attention, EmptyAndSingleTokenInputs) {
  const auto run = [](std::int64_t batch, std::int64_t n_q, std::int64_t n_k) {
    const Tensor q(Array::full({batch, n_q, 4}, 1), true);
    const Tensor k(Array::full({batch, n_k, 4}, 1), true);
    const Tensor v(Array::full({batch, n_k, 4}, 1), true);
    const AttentionResult r = composite::attention(q, k, v, {.heads = 2});
    const AttentionResult streamed = attention(q, k, v, {.heads = 2});
    expect_close(streamed.out.value(), r.out.value(), 0, "streaming");
    for (const AttentionResult& way : {r, streamed}) {
      for (Tensor t : {q, k, v}) t.clear_grad();
      backward(sum(way.out));
      for (const Tensor* t : {&q, &k, &v}) {
        if (n_q == 0 || n_k == 0 || batch == 0)
          expect_close(t->grad(), Array::zeros(t->shape()), 0, "gradient");
      }
    }
    return r;
  };
  EXPECT_EQ(run(0, 3, 3).weights.shape(), (Shape{0, 2, 3, 3}));
  EXPECT_EQ(run(2, 0, 3).out.shape(), (Shape{2, 0, 4}));
  const AttentionResult no_keys = run(2, 2, 0);
  EXPECT_EQ(no_keys.weights.shape(), (Shape{2, 2, 2, 0}));
  expect_close(no_keys.out.value(), Array::zeros({2, 2, 4}), 0, "out");
  EXPECT_EQ(run(1, 1, 1).weights.value().at(0), 1);
}

TEST(Attention, DropoutKeepsItsPromises) {
  const std::int64_t rows = 100'000;
  const Tensor ones(Array::full({rows, 1, 1}, 1));
  const Tensor out = attention(ones, ones, ones, {.dropout = 0.2, .dropout_key = {1, 2, 0}}).out;
  std::int64_t kept = 0;
  double total = 0;
  for (const float x : out.value().values<float>()) {
    EXPECT_TRUE(x == 0 || x == 1.25F) << x;
    kept += x != 0 ? 1 : 0;
    total += static_cast<double>(x);
  }
  EXPECT_NEAR(static_cast<double>(kept) / rows, 0.8, 0.0038);
  EXPECT_NEAR(total / rows, 1, 0.0048);
  const Tensor all_dropped = attention(ones, ones, ones, {.dropout = 1, .dropout_key = {1, 2, 0}}).out;
  expect_close(all_dropped.value(), Array::zeros({rows, 1, 1}), 0, "p = 1");
  EXPECT_THROW(attention(ones, ones, ones, {.dropout = 1.5}), Error);
}

TEST(Attention, DropoutPatternIsTheSameInBackward) {
  // Weights [0.25, 0.75], V = [2, 4]; search a key that keeps the first weight alone.
  for (std::uint64_t counter = 0; counter < 100; ++counter) {
    const Tensor scores_bias = Tensor::of<float>({1, 2}, {0, std::log(3.0F)}, true);
    const Tensor v(Array::of<float>({1, 2, 1}, {2, 4}), true);
    const Tensor zero1 = Tensor::zeros({1, 1, 1});
    const Tensor zero2 = Tensor::zeros({1, 2, 1});
    const Tensor out =
        attention(zero1, zero2, v,
                  {.mask = Mask::bias(scores_bias), .dropout = 0.2, .dropout_key = {9, counter, 0}})
            .out;
    if (std::abs(out.item() - 0.625) > 1e-5) continue;
    backward(sum(out));
    expect_close(scores_bias.grad(), Array::of<float>({1, 2}, {0.46875F, -0.46875F}), 1e-5, "score gradient");
    expect_close(v.grad(), Array::of<float>({1, 2, 1}, {0.3125F, 0}), 1e-5, "V gradient");
    return;
  }
  FAIL() << "no key of 100 kept the first weight alone";
}

TEST(Attention, ReferenceValues) {
  const Golden golden("attention");
  int checked = 0;
  for (const auto& c : golden.cases()) {
    for (const DType dtype : {DType::f64, DType::f32}) {
      SCOPED_TRACE(c.at("name").get<std::string>());
      check_attention_golden(golden, c, dtype);
    }
    ++checked;
  }
  EXPECT_EQ(checked, 18);
}

TEST(HeadGate, MultipliesEachHeadAndIsDifferentiable) {
  const Tensor z(Array::full({2, 3, 4}, 2, DType::f64), true);
  const Tensor gate = Tensor::of<double>({2}, {0.5, 3}, true);
  const Tensor out = head_gate(z, gate, 2);
  EXPECT_EQ(out.value().at(0), 1);
  EXPECT_EQ(out.value().at(3), 6);
  Random random(5, Stream::statistics);
  const Tensor x(random_array(random, {2, 3, 6}, DType::f64), true);
  const Tensor shared(random_array(random, {3}, DType::f64), true);
  const Tensor own(random_array(random, {2, 3}, DType::f64), true);
  const auto f = [](std::span<const Tensor> in) { return head_gate(in[0], in[1], 3); };
  EXPECT_TRUE(gradcheck(f, {x, shared}));
  EXPECT_TRUE(gradcheck(f, {x, own}));
  EXPECT_THROW(head_gate(z, Tensor::zeros({3}, DType::f64), 2), Error);
}

TEST(Attention, SizesThatDoNotFitAreNamed) {
  const Tensor a = Tensor::zeros({2, 3, 8});
  const auto message = [&](const AttentionOptions& o, const Tensor& k) {
    const std::string text = error_of([&] { attention(a, k, k, o); });
    EXPECT_EQ(error_of([&] { composite::attention(a, k, k, o); }), text);
    return text;
  };
  EXPECT_EQ(message({.heads = 3}, a),
            "attention: q [2, 3, 8], k [2, 3, 8], v [2, 3, 8] do not fit 3 heads over 3 key/value heads");
  EXPECT_EQ(message({.heads = 4, .kv_heads = 3}, a), "attention: kv_heads 3 does not divide heads 4");
  EXPECT_EQ(message({.heads = 0}, a), "attention: heads 0 is not positive");
  EXPECT_EQ(message({.heads = 2, .softcap = -1}, a), "attention: softcap -1 is not a number from 0 on");
  EXPECT_EQ(message({.heads = 2, .dropout = 2}, a), "attention: dropout 2 is not in [0, 1]");
  EXPECT_EQ(message({.heads = 2, .offset_bias = Tensor::zeros({2, 6})}, a),
            "attention: needs an offset bias [2, 5], not [2, 6]");
  EXPECT_EQ(message({.heads = 2, .sink = Tensor::zeros({3})}, a), "attention: needs a sink [2], not [3]");
  EXPECT_EQ(message({.heads = 2, .sink = Tensor::zeros({2}, DType::f64)}, a),
            "attention: a sink of f64 for inputs of f32");
  const Tensor eight = Tensor::zeros({2, 8, 8});
  const Mask small = Mask::allow(Array::full({3, 1}, 1, DType::u8));
  EXPECT_EQ(
      message({.heads = 2, .mask = Mask::causal() & small}, eight),
      "attention: a mask's allow of shape [1, 1, 3, 1] does not fit 2 examples, 2 heads and scores of 3 x "
      "8");
}

}  // namespace
}  // namespace headlab
