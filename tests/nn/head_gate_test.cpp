#include <stdexcept>
#include <vector>

#include "framework/autograd/backward.h"
#include "framework/autograd/gradcheck.h"
#include "framework/nn/attention.h"
#include "framework/ops/arithmetic.h"
#include "framework/ops/reduction.h"
#include "tests/support/attention.h"
#include "tests/support/errors.h"

namespace headlab {
namespace {

constexpr std::int64_t batch = 5, tokens = 7, heads = 6, d_v = 3;

/// Grouped heads whose values have a width of their own, on both paths.
class HeadGate : public testing::TestWithParam<bool> {
 protected:
  HeadGate() : layer_({.d_model = 11, .heads = heads, .kv_heads = 2, .d_k = 5, .d_v = d_v}) {
    initialise(layer_, 5);
    if (GetParam()) composite_.emplace(layer_, "pattern", [](const HookSite&, const Tensor&) {});
    Random random(2, Stream::statistics);
    x_ = Tensor(random_array(random, {batch, tokens, 11}, DType::f32));
    gates_ = Tensor(random_array(random, {batch, heads}, DType::f32), true);
  }
  Array out(const Tensor& x, const Tensor& gate) {
    const GateScope scope(layer_, gate);
    return layer_(x, {.mask = Mask::causal()}).out.value();
  }
  MultiHeadAttention layer_;
  std::optional<Hook> composite_;
  Tensor x_, gates_;
};
INSTANTIATE_TEST_SUITE_P(Paths, HeadGate, testing::Bool(),
                         [](const auto& path) { return path.param ? "composite" : "streaming"; });

TEST_P(HeadGate, RunsOnThePathThatTheNameSays) {
  EXPECT_EQ(layer_.attention_path(), GetParam() ? "composite: a hook reads `pattern`" : "streaming");
}

TEST_P(HeadGate, OfOneChangesNoBit) {
  EXPECT_TRUE(same_bits(out(x_, Tensor::full({heads}, 1)), out(x_, Tensor())));
  EXPECT_TRUE(same_bits(out(x_, Tensor::full({batch, heads}, 1)), out(x_, Tensor())));
}

TEST_P(HeadGate, OfZeroRemovesTheHeadsColumnsOfTheOutputProjection) {
  Array& w = (*layer_.out)->weight.tensor().change();  // [11, heads·d_v]
  const Array whole = w.copy();
  for (std::int64_t h = 0; h < heads; ++h) {
    Array gate = Array::full({heads}, 1);
    gate.data<float>()[h] = 0;
    const Array gated = out(x_, Tensor(gate));
    for (std::int64_t row = 0; row < 11; ++row) {
      for (std::int64_t c = 0; c < d_v; ++c) w.data<float>()[row * heads * d_v + h * d_v + c] = 0;
    }
    // 0 · w and z · 0 are the same zero in every sum.
    EXPECT_TRUE(same_bits(gated, out(x_, Tensor())));
    std::copy_n(whole.data<float>(), whole.size(), w.data<float>());
    EXPECT_FALSE(close(gated, out(x_, Tensor()), 1e-4)) << "head " << h << " does nothing";
  }
}

TEST_P(HeadGate, PerExampleGivesTheBitsOfEachExamplesOwnPass) {
  const Array together = out(x_, gates_);
  for (std::int64_t b = 0; b < batch; ++b) {
    const Tensor gate(gates_.value().range(b, b + 1).reshape({heads}));
    const Tensor one(x_.value().range(b, b + 1));
    EXPECT_TRUE(same_bits(together.range(b, b + 1), out(one, gate)));
  }
}

// With a gate of 1, ∂L/∂gate[b, h] = Σ over queries and channels of z·dz: the importance of a head.
TEST_P(HeadGate, GradientIsTheSumOfContextTimesItsGradient) {
  const Tensor ones(Array::full({batch, heads}, 1), true);
  const GateScope scope(layer_, ones);
  Array z, dz;
  const Hook value(layer_, "z", [&](const HookSite&, const Tensor& t) { z = t.value(); });
  const GradientHook gradient(layer_, "z", [&](const HookSite&, const Array& d) { dz = d; });
  const Tensor y = layer_(x_, {.mask = Mask::causal()}).out;
  const Tensor squares = mul(y, y);
  backward(sum(squares));
  Array want = Array::zeros({batch, heads}, DType::f64);
  for (std::int64_t i = 0; i < z.size(); ++i) {
    const std::int64_t b = i / (tokens * heads * d_v);
    want.data<double>()[b * heads + i / d_v % heads] += z.at(i) * dz.at(i);
  }
  expect_close(ones.grad(), want, 1e-5, "gradient of the gate");
}

TEST_P(HeadGate, GradientsAgreeWithDifferences) {
  const DefaultDType f64(DType::f64);
  MultiHeadAttention layer({.d_model = 4, .heads = 2});
  initialise(layer, 3);
  std::optional<Hook> composite;
  if (GetParam()) composite.emplace(layer, "pattern", [](const HookSite&, const Tensor&) {});
  Random random(4, Stream::statistics);
  const Tensor x(random_array(random, {3, 2, 4}, DType::f64), true);
  for (const Shape& shape : {Shape{2}, Shape{3, 2}}) {
    const std::vector<Tensor> inputs{x, Tensor(random_array(random, shape, DType::f64), true)};
    const GradcheckResult result = gradcheck(
        [&](std::span<const Tensor> in) {
          const GateScope scope(layer, in[1]);
          return layer(in[0]).out;
        },
        inputs);
    EXPECT_TRUE(result) << result.message;
  }
}

TEST_P(HeadGate, OfAnotherShapeIsAnErrorAndTheScopePutsTheOldOneBack) {
  const Array before = out(x_, Tensor());
  for (const Shape& shape :
       {Shape{heads + 1}, Shape{batch + 1, heads}, Shape{heads, batch}, Shape{batch, heads, 1}}) {
    EXPECT_EQ(error_of([&] { out(x_, Tensor::zeros(shape)); }),
              fmt::format("head_gate: needs a gate [6] or [5, 6], not {}", shape));
    EXPECT_FALSE(layer_.gate());
  }
  EXPECT_TRUE(same_bits(out(x_, Tensor()), before));
}

}  // namespace
}  // namespace headlab
