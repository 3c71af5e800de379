#include "framework/ops/norm.h"

#include "framework/autograd/gradcheck.h"
#include "framework/core/pool.h"
#include "framework/ops/cross_entropy.h"
#include "framework/ops/softmax.h"
#include "tests/support/ops.h"

namespace headlab {
namespace {

TEST(Norms, AgreeWithTheGoldens) {
  expect_golden("layer_norm",
                [](std::span<const Tensor> in) { return layer_norm(in[0], in[1], in[2], 1e-5); });
  expect_golden("rms_norm", [](std::span<const Tensor> in) { return rms_norm(in[0], in[1], 1e-6); });
}

TEST(LayerNorm, OfAConstantRow) {
  const Tensor x = Tensor::of({4}, {5.0F, 5.0F, 5.0F, 5.0F}, true);
  const Tensor gain(Array::full({4}, 1), true);
  const Tensor bias(Array::full({4}, 0.5), true);
  const Tensor y = layer_norm(x, gain, bias, 1e-5);
  EXPECT_EQ(numbers(y.value()), (std::vector<double>{0.5, 0.5, 0.5, 0.5}));
  backward(y, {.seed = Array::of<float>({4}, {1, 0, 0, 0})});
  const std::vector<double> want{237.1708, -79.0569, -79.0569, -79.0569};
  for (std::size_t i = 0; i < 4; ++i) EXPECT_NEAR(numbers(x.grad())[i], want[i], 1e-4);
  EXPECT_EQ(numbers(gain.grad()), (std::vector<double>{0, 0, 0, 0}));
  EXPECT_EQ(numbers(bias.grad()), (std::vector<double>{1, 0, 0, 0}));
}

TEST(LayerNorm, OfWidthOneIsTheBias) {
  const Tensor x = Tensor::of({3, 1}, {7.3F, -0.1F, 0.0F}, true);
  const Tensor y = layer_norm(x, Tensor::full({1}, 3), Tensor::full({1}, 0.25));
  EXPECT_EQ(numbers(y.value()), (std::vector<double>{0.25, 0.25, 0.25}));
  backward(y, {.seed = Array::full({3, 1}, 1)});
  EXPECT_EQ(numbers(x.grad()), (std::vector<double>{0, 0, 0}));
}

TEST(Norms, OfZerosAreFinite) {
  for (const bool rms : {false, true}) {
    const Tensor x(Array::zeros({2, 19}), true);
    const Tensor y = rms ? rms_norm(x) : layer_norm(x);
    EXPECT_EQ(numbers(y.value()), std::vector<double>(38, 0));
    backward(y, {.seed = Array::full({2, 19}, 1)});
    for (const double g : numbers(x.grad())) EXPECT_TRUE(std::isfinite(g));
  }
}

TEST(Norms, GradientsWithEveryChoiceOfParameters) {
  for (const Shape& shape : {Shape{7}, Shape{1}, Shape{2, 3, 19}, Shape{71, 3}, Shape{0, 5}, Shape{3, 0}}) {
    const Shape last{shape[shape.rank() - 1]};
    const Tensor x(random_array(shape, 1), true);
    const Tensor gain(random_array(last, 2), true);
    const Tensor bias(random_array(last, 3), true);
    const auto expect = [&](const GradcheckFunction& f, const std::vector<Tensor>& inputs) {
      const auto result = gradcheck(f, inputs);
      EXPECT_TRUE(result) << shape.str() << ": " << result.message;
    };
    using In = std::span<const Tensor>;
    expect([](In in) { return layer_norm(in[0], in[1], in[2]); }, {x, gain, bias});
    expect([](In in) { return layer_norm(in[0], in[1]); }, {x, gain});
    expect([](In in) { return layer_norm(in[0], {}, in[1]); }, {x, bias});
    expect([](In in) { return layer_norm(in[0], {}, {}, 0.1); }, {x});
    expect([](In in) { return rms_norm(in[0], in[1]); }, {x, gain});
    expect([](In in) { return rms_norm(in[0], {}, 0.1); }, {x});
  }
}

TEST(Norms, OneTensorInEveryPlace) {
  const auto layer = [](std::span<const Tensor> in) { return layer_norm(in[0], in[0], in[0]); };
  const auto rms = [](std::span<const Tensor> in) { return rms_norm(in[0], in[0]); };
  const Tensor x(random_array({7}, 4), true);
  EXPECT_TRUE(gradcheck(layer, {x}));
  EXPECT_TRUE(gradcheck(rms, {x}));
}

TEST(Norms, OnlyTheParametersNeedGradients) {
  const Tensor x(random_array({5, 7}, 5));
  const Tensor gain(random_array({7}, 6), true);
  const auto f = [&](std::span<const Tensor> in) { return layer_norm(x, in[0]); };
  EXPECT_TRUE(gradcheck(f, {gain}));
}

TEST(Norms, MemoryReturnsWithAndWithoutBackward) {
  const Tensor x(random_array({5, 7}, 9), true);
  const Tensor gain(random_array({7}, 10), true);
  const auto step = [&](bool with_backward) {
    const Tensor normed = layer_norm(x, gain);
    const Tensor weights = softmax(normed);
    const Tensor loss = cross_entropy(weights, Array::zeros({5}, DType::i64)).loss;
    if (with_backward) backward(loss);
  };
  step(true);
  step(true);
  const auto blocks = pool::counters().live_blocks;
  const auto graph = graph_counters();
  for (int i = 0; i < 5; ++i) step(i % 2 == 0);
  EXPECT_EQ(pool::counters().live_blocks, blocks);
  EXPECT_EQ(graph_counters().tensors, graph.tensors);
  EXPECT_EQ(graph_counters().nodes, graph.nodes);
  const NoGrad off;
  const Tensor unrecorded = softmax(layer_norm(x, gain));
  EXPECT_EQ(graph_counters().nodes, graph.nodes);
}

TEST(Norms, Errors) {
  const Tensor x = Tensor::zeros({2, 7});
  EXPECT_EQ(error_of([&] { layer_norm(x, Tensor::zeros({5})); }),
            "layer_norm: gain of shape [5] for x of shape [2, 7]; it needs [7]");
  EXPECT_EQ(error_of([&] { layer_norm(x, {}, Tensor::zeros({7}, DType::f64)); }),
            "layer_norm: bias is f64, x is f32");
  EXPECT_EQ(error_of([&] { rms_norm(x, {}, -1); }), "rms_norm: eps -1 is not a finite number over 0");
  EXPECT_EQ(error_of([&] { rms_norm(Tensor::zeros({})); }),
            "rms_norm: x needs at least one axis, not shape []");
}

TEST(Norms, SameBitsForAnyNumberOfThreads) {
  const Array start = random_array({2503, 53}, 7).to(DType::f32);
  const Array seed = random_array({2503, 53}, 8).to(DType::f32);
  for (const bool rms : {false, true}) {
    expect_same_bits_for_any_threads([&] {
      const Tensor x(start, true);
      const Tensor gain(Array::full({53}, 1.5), true);
      const Tensor bias(Array::full({53}, 0.5), true);
      const Tensor y = rms ? rms_norm(x, gain) : layer_norm(x, gain, bias);
      backward(y, {.seed = seed});
      std::vector<Array> all{y.value(), x.grad(), gain.grad()};
      if (!rms) all.push_back(bias.grad());
      return all;
    });
  }
}

}  // namespace
}  // namespace headlab
