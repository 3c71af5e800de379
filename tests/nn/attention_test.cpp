#include "framework/nn/attention.h"

#include <vector>

#include "framework/autograd/gradcheck.h"
#include "tests/support/attention.h"

namespace headlab {
namespace {

std::string message_of(const MultiHeadAttention::Options& options) {
  try {
    const MultiHeadAttention layer(options);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(MultiHeadAttention, HeadCountsAreValidated) {
  EXPECT_EQ(message_of({.d_model = 10, .heads = 3}),
            "attention: d_model 10 is not a multiple of heads 3; give d_k to have it free");
  for (const auto& [d_model, heads] :
       std::vector<std::pair<std::int64_t, std::int64_t>>{{8, 0}, {8, -2}, {8, 16}, {0, 1}}) {
    EXPECT_NE(message_of({.d_model = d_model, .heads = heads}), "no error") << d_model << ", " << heads;
  }
  EXPECT_EQ(message_of({.d_model = 12, .heads = 6, .kv_heads = 4}),
            "attention: kv_heads 4 does not divide heads 6");
  EXPECT_NE(message_of({.d_model = 8, .heads = 4, .kv_heads = 8}), "no error");
  EXPECT_NE(message_of({.d_model = 8, .heads = 4, .kv_heads = -1}), "no error");
  EXPECT_EQ(message_of({.d_model = 8, .heads = 8}), "no error");
  EXPECT_EQ(message_of({.d_model = 8, .heads = 1}), "no error");
  EXPECT_EQ(message_of({.d_model = 12, .heads = 6, .kv_heads = 2}), "no error");
  EXPECT_EQ(message_of({.d_model = 10, .heads = 3, .d_k = 5}), "no error");
  EXPECT_NE(message_of({.d_model = 9, .heads = 3, .rotary = MultiHeadAttention::Rotary{}}), "no error");
}

TEST(MultiHeadAttention, FirstWeightsDoNotDependOnPackingOrHeads) {
  const auto weights = [](std::int64_t heads, std::int64_t kdim) {
    MultiHeadAttention layer({.d_model = 64, .heads = heads, .kdim = kdim});
    initialise(layer, 11);
    return std::vector<Array>{layer.q_proj().weight.value().copy(), layer.v_proj().weight.value().copy(),
                              (*layer.out)->weight.tensor().value().copy()};
  };
  const auto reference = weights(1, 0);
  for (const std::int64_t heads : {2, 4, 8}) {
    const auto other = weights(heads, 0);
    for (std::size_t i = 0; i < 3; ++i) EXPECT_TRUE(same_bits(other[i], reference[i]));
  }
  const auto unpacked = weights(4, 32);  // another kdim: W_Q, W_K, W_V are parameters of their own
  for (std::size_t i = 0; i < 3; ++i) EXPECT_TRUE(same_bits(unpacked[i], reference[i]));
  double square = 0;
  double most = 0;
  for (const float w : reference[0].values<float>()) {
    square += static_cast<double>(w) * static_cast<double>(w);
    most = std::max(most, std::abs(static_cast<double>(w)));
  }
  EXPECT_NEAR(std::sqrt(square / 4096), 0.125, 0.003);
  EXPECT_LE(most, 0.2165064);
  EXPECT_GT(most, 0.2150);
}

TEST(MultiHeadAttention, GateOfZeroRemovesAHead) {
  MultiHeadAttention layer({.d_model = 6, .heads = 3, .bias = false});
  initialise(layer, 5);
  Random random(2, Stream::statistics);
  const Tensor x(random_array(random, {2, 5, 6}, DType::f32));
  const Array ungated = layer(x).out.value();
  {
    const GateScope gate(layer, Tensor::of<float>({3}, {1, 1, 1}));
    EXPECT_TRUE(same_bits(layer(x).out.value(), ungated));
  }
  const Array gated = [&] {
    const GateScope gate(layer, Tensor::of<float>({3}, {1, 0, 1}));
    return layer(x).out.value();
  }();
  Array& w = (*layer.out)->weight.tensor().change();  // [6, 3·2]: head 1 owns columns 2 and 3
  for (int row = 0; row < 6; ++row) w.data<float>()[row * 6 + 2] = w.data<float>()[row * 6 + 3] = 0;
  expect_close(layer(x).out.value(), gated, 1e-6, "columns of W_O removed");
}

TEST(MultiHeadAttention, GradientsAgreeWithDifferences) {
  const DefaultDType f64(DType::f64);
  for (const MultiHeadAttention::Options& o :
       {MultiHeadAttention::Options{.d_model = 6, .heads = 3, .rotary = MultiHeadAttention::Rotary{}},
        MultiHeadAttention::Options{.d_model = 5, .heads = 4, .kv_heads = 2, .d_k = 2, .d_v = 3},
        MultiHeadAttention::Options{.d_model = 4, .heads = 2, .out_proj = false}}) {
    MultiHeadAttention layer(o);
    initialise(layer, 3);
    Random random(4, Stream::statistics);
    std::vector<Tensor> inputs{Tensor(random_array(random, {2, 3, o.d_model}, DType::f64), true)};
    for (const NamedParameter& p : layer.parameters()) inputs.push_back(p.parameter->tensor());
    const auto f = [&](std::span<const Tensor> in) { return layer(in[0], {.mask = Mask::causal()}).out; };
    const GradcheckResult result = gradcheck(f, inputs);
    EXPECT_TRUE(result) << result.message;
  }
}

}  // namespace
}  // namespace headlab
