// Soft caps, sinks, biases by distance, score functions: gradients against differences and closed forms, for
// attention() and its composite.
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "framework/autograd/gradcheck.h"
#include "framework/ops/arithmetic.h"
#include "framework/ops/attention.h"
#include "framework/ops/matmul.h"
#include "framework/ops/reduction.h"
#include "framework/ops/relative_position.h"
#include "framework/ops/shaping.h"
#include "tests/support/ops.h"

namespace headlab {
namespace {

constexpr std::int64_t n_q = 3, n_k = 5;

AttentionResult run(bool streaming, const Tensor& q, const Tensor& k, const Tensor& v,
                    const AttentionOptions& o) {
  return streaming ? attention(q, k, v, o) : composite::attention(q, k, v, o);
}

// What a variant adds to the options; its own leaves come after q, k and v.
struct Variant {
  std::string name;
  std::vector<Array> leaves;
  std::function<void(AttentionOptions&, std::span<const Tensor>)> set;
};

std::vector<Variant> variants() {
  using In = std::span<const Tensor>;
  const Array bias = random_array({2, 4, n_q, n_k}, 11);
  const Array offsets = random_array({4, n_q + n_k - 1}, 12);
  const Array sink = random_array({4}, 13);
  const auto nothing = [](AttentionOptions&, In) {};
  const auto with_bias = [](AttentionOptions& o, In x) { o.mask = o.mask & Mask::bias(x[0]); };
  const auto with_offsets = [](AttentionOptions& o, In x) { o.offset_bias = x[0]; };
  const auto with_sink = [](AttentionOptions& o, In x) { o.sink = x[0]; };
  Array ids({2, n_k}, DType::i64);
  for (std::int64_t i = 0; i < 10; ++i) ids.data<std::int64_t>()[i] = i % n_k / 2;
  const auto mask = [](const Mask& m) { return [m](AttentionOptions& o, In) { o.mask = m; }; };
  return {
      {"plain", {}, nothing},
      {"scale", {}, [](AttentionOptions& o, In) { o.scale = 0.3; }},
      {"softcap", {}, [](AttentionOptions& o, In) { o.softcap = 0.7; }},
      {"bias", {bias}, with_bias},
      {"shared bias", {random_array({n_q, n_k}, 14)}, with_bias},
      {"bias per head", {random_array({1, 4, n_q, n_k}, 15)}, with_bias},
      {"bias per example", {random_array({2, 1, n_q, n_k}, 16)}, with_bias},
      {"bias by distance", {offsets}, with_offsets},
      {"sink", {sink}, with_sink},
      {"window", {}, mask(Mask::window(2))},
      {"causal", {}, mask(Mask::causal())},
      {"upper left", {}, mask(Mask::causal_upper_left())},
      {"prefix", {}, mask(Mask::prefix({4, 0}))},
      {"segments", {}, mask(Mask::segments(ids) & Mask::causal())},
      {"key lengths", {}, mask(Mask::key_lengths({0, 3}))},
      {"dropout",
       {},
       [](AttentionOptions& o, In) {
         o.dropout = 0.4;
         o.dropout_key = {3, 1, 0};
       }},
      {"everything",
       {bias, offsets, sink},
       [](AttentionOptions& o, In x) {
         o.mask = Mask::bias(x[0]) & Mask::causal() & Mask::window(4) & Mask::key_lengths({5, 3});
         o.offset_bias = x[1];
         o.sink = x[2];
         o.softcap = 1.1;
         o.dropout = 0.2;
         o.dropout_key = {3, 1, 0};
       }},
  };
}

TEST(AttentionVariants, GradientsAgreeWithDifferences) {
  for (const Variant& variant : variants()) {
    std::vector<Tensor> inputs{Tensor(random_array({2, n_q, 4 * 2}, 1), true),
                               Tensor(random_array({2, n_k, 2 * 2}, 2), true),
                               Tensor(random_array({2, n_k, 2 * 3}, 3), true)};
    for (const Array& leaf : variant.leaves) inputs.emplace_back(leaf.copy(), true);
    for (const bool streaming : {true, false}) {
      const auto f = [&](std::span<const Tensor> x) {
        AttentionOptions o{.heads = 4, .kv_heads = 2};
        variant.set(o, x.subspan(3));
        return run(streaming, x[0], x[1], x[2], o).out;
      };
      const GradcheckResult result = gradcheck(f, inputs);
      EXPECT_TRUE(result) << variant.name << (streaming ? ", streaming: " : ", composite: ")
                          << result.message;
    }
  }
}

// One head, one query at 1, keys that are the wanted raw scores.
std::vector<double> weights_of(const std::vector<double>& scores, AttentionOptions o) {
  const std::int64_t n = std::ssize(scores);
  Array k({1, n, 1}, DType::f64);
  std::copy(scores.begin(), scores.end(), k.data<double>());
  Array identity = Array::zeros({1, n, n}, DType::f64);
  for (std::int64_t i = 0; i < n; ++i) identity.data<double>()[i * n + i] = 1;
  o.scale = 1;
  const Tensor one = Tensor::full({1, 1, 1}, 1, DType::f64);
  const Array out = attention(one, Tensor(k), Tensor(identity), o).out.value();
  const AttentionResult definition = composite::attention(one, Tensor(k), Tensor(identity), o);
  expect_close(definition.out.value(), out, 1e-14);
  expect_close(definition.weights.value().reshape({1, 1, n}), out, 1e-14);
  return numbers(out);
}

void expect_near(const std::vector<double>& got, const std::vector<double>& want) {
  ASSERT_EQ(got.size(), want.size());
  for (std::size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], want[i], 1e-12) << i;
}

TEST(AttentionVariants, ClosedForms) {
  const double e = std::exp(1);
  expect_near(weights_of({0, 1}, {}), {1 / (1 + e), e / (1 + e)});
  // softcap·tanh(s/softcap): 2·tanh(∞) = 2.
  expect_near(weights_of({0, 1e9}, {.softcap = 2}), {1 / (1 + e * e), e * e / (1 + e * e)});
  // A sink of score s takes e^s / (e^s + Σ e^score).
  expect_near(weights_of({0, 0}, {.sink = Tensor::of<double>({1}, {std::log(2)})}), {0.25, 0.25});
  expect_near(weights_of({0, 0}, {.sink = Tensor::of<double>({1}, {-HUGE_VAL})}), {0.5, 0.5});
  // Three keys, the query at the last one: δ = −2, −1, 0 are entries 0, 1, 2.
  const Tensor bias = Tensor::of<double>({1, 3}, {std::log(1), std::log(2), std::log(5)});
  expect_near(weights_of({0, 0, 0}, {.offset_bias = bias}), {0.125, 0.25, 0.625});
  // The order: the cap is on q·k alone, biases come after it.
  const Mask ten = Mask::bias(Tensor::of<double>({1, 2}, {0, 10}));
  expect_near(weights_of({0, 0}, {.softcap = 1, .mask = ten}),
              {1 / (1 + std::exp(10)), 1 / (1 + std::exp(-10))});
}

TEST(AttentionVariants, ASinkTakesNothingFromQueriesWithoutKeys) {
  for (const bool streaming : {true, false}) {
    const Tensor q(random_array({1, 3, 2}, 1), true);
    const Tensor k(random_array({1, 1, 2}, 2), true);
    const Tensor v(random_array({1, 1, 2}, 3), true);
    const Tensor sink = Tensor::of<double>({1}, {0.5}, true);
    const AttentionOptions o{.mask = Mask::causal(), .sink = sink};
    const Tensor out = run(streaming, q, k, v, o).out;
    for (std::int64_t i = 0; i < 4; ++i) EXPECT_EQ(out.value().at(i), 0);
    EXPECT_NE(out.value().at(4), 0);
    backward(out, {.seed = Array::of<double>({1, 3, 2}, {1, 1, 1, 1, 0, 0})});
    EXPECT_EQ(sink.grad().at(0), 0);
    expect_close(q.grad(), Array::zeros({1, 3, 2}), 0);
    expect_close(v.grad(), Array::zeros({1, 1, 2}), 0);
  }
}

// The last key is blocked, and the last query sees nothing: whatever they hold, no bit of the result changes
// and no gradient becomes NaN.
TEST(AttentionVariants, BlockedContentReachesNothing) {
  const auto inputs = [](double poison) {
    std::vector<Tensor> list;
    for (const std::int64_t width : {6, 2, 3}) {
      Array x = random_array({1, 5, width}, static_cast<std::uint64_t>(width));
      std::fill_n(x.data<double>() + 4 * width, width, poison);
      list.emplace_back(x, true);
    }
    return list;
  };
  const auto results = [&](double poison, const AttentionOptions& o) {
    const std::vector<Tensor> in = inputs(poison);
    const Tensor out = composite::attention(in[0], in[1], in[2], o).out;
    backward(sum(mul(out, out)));
    return std::vector<Array>{out.value(), in[0].grad().copy(), in[1].grad().copy(), in[2].grad().copy()};
  };
  const auto streamed = [&](double poison, const AttentionOptions& o) {
    const std::vector<Tensor> in = inputs(poison);
    return attention(in[0], in[1], in[2], o).out.value();
  };
  Array allow = Array::full({5, 5}, 1, DType::u8);
  std::fill_n(allow.data<std::uint8_t>() + 20, 5, std::uint8_t{0});
  Array cut = Array::zeros({5, 5}, DType::f64);
  for (std::int64_t i = 0; i < 5; ++i) cut.data<double>()[i * 5 + 4] = -HUGE_VAL;
  const Mask last_query = Mask::allow(allow);
  for (const Mask& mask : {last_query & Mask::key_lengths({4}), last_query & Mask::bias(Tensor(cut)),
                           last_query & Mask::causal() & Mask::key_lengths({4})}) {
    for (const double softcap : {0.0, 2.0}) {
      const AttentionOptions o{.heads = 3, .kv_heads = 1, .softcap = softcap, .mask = mask};
      const auto clean = results(0, o);
      for (const double poison : {std::nan(""), HUGE_VAL}) {
        const auto poisoned = results(poison, o);
        EXPECT_TRUE(same_bits(poisoned[0], clean[0])) << "softcap " << softcap;
        for (std::size_t i = 1; i < 4; ++i) expect_close(poisoned[i], clean[i], 1e-14);
        EXPECT_TRUE(same_bits(streamed(poison, o), streamed(0, o))) << "softcap " << softcap;
      }
    }
  }
}

// Under a causal mask the last query alone sees the last key.
TEST(AttentionVariants, InfinityThatOnlyLaterQueriesSeeReachesNoEarlierOne) {
  for (const bool streaming : {true, false}) {
    Array k = random_array({2, 5, 4}, 2);
    Array v = random_array({2, 5, 6}, 3);
    for (Array* x : {&k, &v}) {
      for (const std::int64_t b : {0, 1})
        std::fill_n(x->data<double>() + (b * 5 + 4) * x->dim(2), x->dim(2), HUGE_VAL);
    }
    const Tensor q(random_array({2, 5, 8}, 1), true);
    const Tensor keys(k, true);
    const Tensor values(v, true);
    const AttentionOptions o{.heads = 4, .kv_heads = 2, .softcap = 3, .mask = Mask::causal()};
    const Tensor early = slice(run(streaming, q, keys, values, o).out, 1, 0, 4);
    const auto first = [](const Tensor& x) { return Tensor(slice(x, 1, 0, 4).value().copy()); };
    const AttentionResult want = composite::attention(first(q), first(keys), first(values), o);
    expect_close(early.value(), want.out.value(), 1e-14);
  }
}

TEST(AttentionVariants, AScoreFunctionReplacesTheProduct) {
  const Tensor q(random_array({2, 3, 4 * 2}, 1), true);
  const Tensor k(random_array({2, 5, 2 * 2}, 2), true);
  const Tensor v(random_array({2, 5, 2 * 3}, 3), true);
  const AttentionOptions o{.heads = 4, .kv_heads = 2, .softcap = 2, .mask = Mask::causal()};
  composite::AttentionInside inside;
  inside.score = [](const Tensor& a, const Tensor& b) {
    const Tensor scores = matmul(a, swap_axes(b, 2, 3));
    return mul(scores, 1 / std::sqrt(2.0));
  };
  const AttentionResult own = composite::attention(q, k, v, o, inside);
  expect_close(own.out.value(), attention(q, k, v, o).out.value(), 1e-12);
  const auto f = [&](std::span<const Tensor> x) {
    return composite::attention(x[0], x[1], x[2], o, inside).out;
  };
  const GradcheckResult result = gradcheck(f, {q, k, v});
  EXPECT_TRUE(result) << result.message;
  inside.score = [](const Tensor& a, const Tensor&) { return a; };
  EXPECT_EQ(error_of([&] { composite::attention(q, k, v, o, inside); }),
            "attention: a score function gave [2, 4, 3, 2], needs [2, 4, 3, 5]");
}

}  // namespace
}  // namespace headlab
