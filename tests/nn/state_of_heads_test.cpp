#include <gtest/gtest.h>

#include "framework/nn/attention.h"
#include "tests/support/errors.h"
#include "tests/support/random_array.h"

namespace headlab {
namespace {

// Six heads, two of which share keys and values; all that a layer can have beside.
MultiHeadAttention::Options grouped(std::int64_t heads, std::int64_t kv_heads) {
  MultiHeadAttention::Options options;
  options.d_model = 13;
  options.heads = heads;
  options.kv_heads = kv_heads;
  options.d_k = 4;
  options.d_v = 3;
  options.sink = true;
  options.relative_bias = RelativeBuckets{.buckets = 8, .bidirectional = false};
  options.qk_norm = MultiHeadAttention::QkNorm::rms;
  return options;
}

TEST(StateOfHeads, IsThatOfALayerThatSaysWhatTheGatedOneSays) {
  for (const std::int64_t kdim : {0, 7}) {
    MultiHeadAttention::Options options = grouped(6, 3);
    options.kdim = kdim;
    options.vdim = kdim;
    MultiHeadAttention layer(options);
    initialise(layer, 3);
    options.heads = 4;
    options.kv_heads = 2;
    MultiHeadAttention smaller(options);
    const std::vector<std::int64_t> kept = {0, 1, 4, 5};
    const std::vector<double> scales = {1, 0.5, 1, 0.25};
    smaller.load_state(layer.state_of_heads(kept, scales));
    layer.eval();
    smaller.eval();
    const NoGrad no_grad;
    const Tensor x(random_array({2, 5, 13}, 1).to(DType::f32));
    const Tensor memory = kdim > 0 ? Tensor(random_array({2, 5, kdim}, 2).to(DType::f32)) : x;
    const GateScope gate(layer, Tensor::of({6}, {1.0F, 0.5F, 0.0F, 0.0F, 1.0F, 0.25F}));
    const Array a = layer(x, memory, memory, {.mask = Mask::causal()}).out.value();
    const Array b = smaller(x, memory, memory, {.mask = Mask::causal()}).out.value();
    for (std::int64_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a.at(i), b.at(i), 1e-6);
  }
}

TEST(StateOfHeads, KeepsHeadsThatShareKeysTogether) {
  MultiHeadAttention layer(grouped(6, 3));
  EXPECT_EQ(layer.heads_together(), 2);
  const std::vector<std::int64_t> torn = {0, 1, 3};
  EXPECT_EQ(error_of([&] { layer.state_of_heads(torn, std::vector<double>(3, 1)); }),
            "attention: heads 2 to 3 share keys and values: they stay or go together");
  const std::vector<std::int64_t> falling = {1, 0};
  EXPECT_EQ(error_of([&] { layer.state_of_heads(falling, std::vector<double>(2, 1)); }),
            "attention: head 0 cannot be kept: heads are from 0 to 5 and rise");
}

TEST(StateOfHeads, OfNoHeadsIsTheBiasAlone) {
  MultiHeadAttention::Options options{.d_model = 6, .heads = 3};
  MultiHeadAttention layer(options);
  for (const NamedParameter& named : layer.parameters()) {
    if (named.path == "out.bias") named.parameter->tensor().change().fill(0.5);
  }
  options.heads = 0;
  options.d_k = 2;
  MultiHeadAttention none(options);
  none.load_state(layer.state_of_heads({}, {}));
  EXPECT_EQ(none.heads(), 0);
  none.want_telemetry(TelemetryOptions{});
  const Array y = none(Tensor(random_array({2, 5, 6}, 1).to(DType::f32))).out.value();
  EXPECT_EQ(y.shape(), (Shape{2, 5, 6}));
  for (const float value : y.values<float>()) EXPECT_EQ(value, 0.5F);
  EXPECT_TRUE(none.telemetry()->heads.empty());
}

}  // namespace
}  // namespace headlab
