#include "framework/nn/attention.h"

#include <vector>

#include "framework/autograd/backward.h"
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

// PyTorch's own layout into ours: in_proj is q, k, v one below the other; separate projections have one
// packed bias.
void load(MultiHeadAttention& layer, const Golden& golden, const std::string& name, DType dtype) {
  std::map<std::string, Array> state;
  const auto take = [&](const std::string& theirs, const std::string& ours) {
    if (golden.has(name + ".param." + theirs)) state[ours] = golden(name + ".param." + theirs, dtype);
  };
  take("in_proj_weight", "qkv.weight");
  take("q_proj_weight", "q.weight");
  take("k_proj_weight", "k.weight");
  take("v_proj_weight", "v.weight");
  take("in_proj_bias", "qkv.bias");
  take("out_proj.weight", "out.weight");
  take("out_proj.bias", "out.bias");
  layer.load_state(state);
}

TEST(MultiHeadAttention, ReferenceValues) {
  const Golden golden("mha");
  int checked = 0;
  for (const auto& c : golden.cases()) {
    const auto name = c.at("name").get<std::string>();
    for (const DType dtype : {DType::f64, DType::f32}) {
      SCOPED_TRACE(name);
      const double tolerance = dtype == DType::f64 ? 1e-10 : 1e-5;
      const DefaultDType scope(dtype);
      MultiHeadAttention::Options o{.d_model = c.at("d_model").get<std::int64_t>(),
                                    .heads = c.at("heads").get<std::int64_t>(),
                                    .bias = c.at("bias").get<bool>()};
      if (!c.at("kdim").is_null()) o.kdim = c.at("kdim").get<std::int64_t>();
      if (!c.at("vdim").is_null()) o.vdim = c.at("vdim").get<std::int64_t>();
      MultiHeadAttention layer(o);
      load(layer, golden, name, dtype);
      Mask mask;
      if (golden.has(name + ".allow")) mask = mask & Mask::allow(golden(name + ".allow", DType::u8));
      if (golden.has(name + ".key_allow"))
        mask = mask & Mask::valid_keys(golden(name + ".key_allow", DType::u8));
      const Tensor query(golden(name + ".query", dtype), true);
      const Tensor key = golden.has(name + ".key") ? Tensor(golden(name + ".key", dtype), true) : query;
      const Tensor value = golden.has(name + ".value") ? Tensor(golden(name + ".value", dtype), true) : key;
      const bool self = key.same_as(query);
      const auto r = self ? layer(query, {.mask = mask, .weights = true})
                          : layer(query, key, value, {.mask = mask, .weights = true});
      expect_close(r.out.value(), golden(name + ".out", dtype), tolerance, "out");
      expect_close(r.weights.value(), golden(name + ".weights", dtype), tolerance, "weights");
      backward(r.out, {.seed = golden(name + ".d_out", dtype)});
      expect_close(query.grad(), golden(name + ".d_query", dtype), tolerance, "d_query");
      if (!self) expect_close(key.grad(), golden(name + ".d_key", dtype), tolerance, "d_key");
      if (golden.has(name + ".d_value"))
        expect_close(value.grad(), golden(name + ".d_value", dtype), tolerance, "d_value");
      const auto gradient = [&](const std::optional<Parameter>& p, const std::string& theirs) {
        if (p)
          expect_close(p->tensor().grad(), golden(name + ".d_param." + theirs, dtype), tolerance, theirs);
      };
      gradient(layer.qkv_weight, "in_proj_weight");
      gradient(layer.q_weight, "q_proj_weight");
      gradient(layer.k_weight, "k_proj_weight");
      gradient(layer.v_weight, "v_proj_weight");
      gradient(layer.qkv_bias, "in_proj_bias");
      expect_close((*layer.out)->weight.tensor().grad(), golden(name + ".d_param.out_proj.weight", dtype),
                   tolerance, "W_O");
    }
    ++checked;
  }
  EXPECT_EQ(checked, 12);
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
    for (std::size_t i = 0; i < 3; ++i) expect_same_bits(other[i], reference[i]);
  }
  const auto unpacked = weights(4, 32);  // another kdim: W_Q, W_K, W_V are parameters of their own
  for (std::size_t i = 0; i < 3; ++i) expect_same_bits(unpacked[i], reference[i]);
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
    expect_same_bits(layer(x).out.value(), ungated);
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
