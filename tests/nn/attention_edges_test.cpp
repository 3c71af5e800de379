// What options, masks, padding and sizes at the edge do to the layer.
#include <limits>
#include <tuple>
#include <vector>

#include "framework/autograd/backward.h"
#include "framework/core/parallel.h"
#include "framework/nn/attention.h"
#include "framework/nn/step_context.h"
#include "framework/ops/reduction.h"
#include "tests/support/attention.h"

namespace headlab {
namespace {

TEST(MultiHeadAttention, WholeHeadMayBeBlocked) {
  MultiHeadAttention layer({.d_model = 3, .heads = 3});
  initialise(layer, 7);
  Array allow = Array::full({1, 3, 5, 5}, 1, DType::u8);
  std::fill_n(allow.data<std::uint8_t>() + 50, 25, std::uint8_t{0});
  const Tensor x(Array::full({2, 5, 3}, 0.5));
  const auto with = layer(x, {.mask = Mask::allow(allow), .weights = true});
  const auto without = layer(x, {.mask = Mask::allow(allow)});
  EXPECT_TRUE(same_bits(with.out.value(), without.out.value()));
  for (const std::int64_t b : {0, 1}) {
    for (std::int64_t i = 0; i < 25; ++i) EXPECT_EQ(with.weights.value().at((b * 3 + 2) * 25 + i), 0);
  }
  const Mask wrong = Mask::allow(Array::full({3, 1}, 1, DType::u8)) & Mask::causal();
  EXPECT_THROW(layer(Tensor::zeros({1, 8, 3}), {.mask = wrong}), Error);
}

TEST(MultiHeadAttention, EmptyInputsGiveTheOutputBias) {
  MultiHeadAttention layer({.d_model = 4, .heads = 2});
  initialise(layer, 7);
  (*layer.out)->bias->tensor().change().fill(0.25);
  EXPECT_EQ(layer(Tensor::zeros({0, 3, 4}), {.weights = true}).weights.shape(), (Shape{0, 2, 3, 3}));
  EXPECT_EQ(layer(Tensor::zeros({2, 0, 4})).out.shape(), (Shape{2, 0, 4}));
  const Tensor none = Tensor::zeros({2, 0, 4});
  const auto r = layer(Tensor::zeros({2, 2, 4}), none, none, {.weights = true});
  EXPECT_EQ(r.weights.shape(), (Shape{2, 2, 2, 0}));
  expect_close(r.out.value(), Array::full({2, 2, 4}, 0.25), 0, "out");
  EXPECT_EQ(layer(Tensor(Array::full({1, 1, 4}, 3)), {.weights = true}).weights.value().at(0), 1);
}

TEST(MultiHeadAttention, NonFinitePaddingReachesNoGradient) {
  const auto run = [](float padding, bool cross) {
    MultiHeadAttention layer({.d_model = 4, .heads = 2});
    initialise(layer, 5);
    Random random(2, Stream::statistics);
    Array value = random_array(random, {2, 3, 4}, DType::f32);
    std::fill_n(value.data<float>() + 5 * 4, 4, padding);  // the last token of example 1
    const Tensor x(value, true);
    const Tensor query(Array::full({2, 3, 4}, 0.5), true);
    const Mask mask = Mask::key_lengths({3, 2});
    const Tensor out = cross ? layer(query, x, x, {.mask = mask}).out : layer(x, {.mask = mask}).out;
    Array seed = Array::full({2, 3, 4}, 1);
    if (!cross) std::fill_n(seed.data<float>() + 5 * 4, 4, 0.0F);  // a padded query is left out of the loss
    backward(out, {.seed = seed});
    std::vector<Array> all{x.grad().copy()};
    for (const NamedParameter& p : layer.parameters()) all.push_back(p.parameter->tensor().grad().copy());
    return all;
  };
  for (const bool cross : {false, true}) {
    const auto clean = run(0, cross);
    for (const float padding :
         {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
      const auto broken = run(padding, cross);
      for (std::size_t i = 0; i < clean.size(); ++i) EXPECT_TRUE(same_bits(broken[i], clean[i]));
    }
    for (int c = 0; c < 4; ++c) EXPECT_EQ(clean[0].at(5 * 4 + c), 0);
  }
}

TEST(MultiHeadAttention, SmallWorkStaysOnOneThread) {
  set_threads(4);
  for (const auto& [d_model, heads, tokens] :
       std::vector<std::tuple<std::int64_t, std::int64_t, std::int64_t>>{{8, 1, 4}, {16, 2, 8}}) {
    MultiHeadAttention layer({.d_model = d_model, .heads = heads});
    initialise(layer, 5);
    const Tensor x(Array::full({1, tokens, d_model}, 1), true);
    reset_parallel_counters();
    backward(sum(layer(x, {.mask = Mask::causal()}).out));
    EXPECT_EQ(parallel_counters().parallel_loops, 0);
  }
  set_threads(0);
}

TEST(MultiHeadAttention, OptionsDoNotChangeWhatIsVisible) {
  MultiHeadAttention layer({.d_model = 4, .heads = 2, .dropout = 0.3});
  initialise(layer, 7);
  Random random(1, Stream::statistics);
  const Array first = random_array(random, {2, 4, 4}, DType::f32);
  Array second = first.copy();
  for (const std::int64_t b : {0, 1}) {
    for (int c = 0; c < 4; ++c) second.data<float>()[(b * 4 + 3) * 4 + c] += 1;
  }
  for (const bool weights : {false, true}) {
    for (const bool average : {false, true}) {
      for (const bool train : {false, true}) {
        layer.train(train);
        const TrainingStep step({.seed = 1, .step = 2});
        const MultiHeadAttention::Call call{
            .mask = Mask::causal(), .weights = weights, .average_weights = average};
        const Array a = layer(Tensor(first), call).out.value();
        const Array b = layer(Tensor(second), call).out.value();
        for (const std::int64_t e : {0, 1}) {
          EXPECT_TRUE(same_bits(a.range(e, e + 1).reshape({4, 4}).range(0, 3),
                                b.range(e, e + 1).reshape({4, 4}).range(0, 3)));
        }
        EXPECT_NE(a.at(12), b.at(12));
      }
    }
  }
  const auto shapes = layer(Tensor(first), {.weights = true, .average_weights = true}).weights.shape();
  EXPECT_EQ(shapes, (Shape{2, 4, 4}));
}

}  // namespace
}  // namespace headlab
