#include "models/torch_attention.h"

#include <limits>
#include <vector>

#include "framework/autograd/backward.h"
#include "tests/support/attention.h"
#include "tests/support/errors.h"
#include "tests/support/temporary_folder.h"

namespace headlab {
namespace {

/// PyTorch's bool mask, True = blocked, of one that says what is allowed.
Array blocked(const Array& allowed) {
  Array mask(allowed.shape(), DType::u8);
  for (std::int64_t i = 0; i < mask.size(); ++i) mask.data<std::uint8_t>()[i] = allowed.at(i) == 0 ? 1 : 0;
  return mask;
}

TEST(TorchAttention, ReferenceValues) {
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
      load_torch_attention(layer, golden.arrays(), name + ".param.");
      Mask mask;
      if (golden.has(name + ".allow"))
        mask = mask & torch_attn_mask(blocked(golden(name + ".allow")), o.heads);
      if (golden.has(name + ".key_allow"))
        mask = mask & torch_key_padding_mask(blocked(golden(name + ".key_allow")));
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

/// What PyTorch would save for embed_dim 6 (kdim 5, vdim 7 when unpacked).
NamedArrays torch_state(bool packed, const std::string& prefix = {}, DType dtype = DType::f32) {
  Random random(3, Stream::statistics);
  NamedArrays state;
  const auto add = [&](const std::string& name, Shape shape) {
    state[prefix + name] = random_array(random, shape, dtype);
  };
  if (packed) {
    add("in_proj_weight", {18, 6});
  } else {
    add("q_proj_weight", {6, 6});
    add("k_proj_weight", {6, 5});
    add("v_proj_weight", {6, 7});
  }
  add("in_proj_bias", {18});
  add("out_proj.weight", {6, 6});
  add("out_proj.bias", {6});
  return state;
}

MultiHeadAttention::Options options(bool packed) {
  return {.d_model = 6, .heads = 3, .kdim = packed ? 0 : 5, .vdim = packed ? 0 : 7};
}

TEST(TorchAttention, GoesRoundThroughAFileBitForBit) {
  const TemporaryFolder folder;
  for (const bool packed : {true, false}) {
    for (const DType dtype : {DType::f32, DType::f64}) {
      const DefaultDType scope(dtype);
      const std::string prefix = "encoder.layers.0.self_attn.";
      const NamedArrays theirs = torch_state(packed, prefix, dtype);
      NamedArrays file = theirs;
      file["encoder.layers.0.linear1.weight"] = Array::zeros({2, 3});  // of somebody else
      write_safetensors(folder.path() / "model.safetensors", file);
      MultiHeadAttention layer(options(packed));
      initialise(layer, 1);
      load_torch_attention(layer, read_safetensors(folder.path() / "model.safetensors").arrays, prefix);
      const NamedArrays saved = torch_attention_state(layer, prefix);
      ASSERT_EQ(saved.size(), theirs.size());
      for (const auto& entry : theirs) EXPECT_TRUE(same_bits(saved.at(entry.first), entry.second));

      MultiHeadAttention other(options(packed));
      load_torch_attention(other, torch_attention_state(layer));
      const std::map<std::string, Array> state = layer.state();
      const std::map<std::string, Array> copy = other.state();
      for (const auto& entry : state) EXPECT_TRUE(same_bits(copy.at(entry.first), entry.second));
    }
  }
}

TEST(TorchAttention, RefusesWhatDoesNotFitAndChangesNothing) {
  MultiHeadAttention layer(options(true));
  initialise(layer, 1);
  const std::map<std::string, Array> before = layer.state();
  const auto message = [&](const std::function<void(NamedArrays&)>& spoil) {
    NamedArrays state = torch_state(true, "a.");
    spoil(state);
    const std::string text = error_of([&] { load_torch_attention(layer, state, "a."); });
    const std::map<std::string, Array> after = layer.state();
    for (const auto& entry : before) EXPECT_TRUE(same_bits(after.at(entry.first), entry.second));
    return text;
  };
  const std::string takes = "it takes 'in_proj_bias', 'in_proj_weight', 'out_proj.bias', 'out_proj.weight'";
  EXPECT_EQ(message([](NamedArrays& s) { s.erase("a.in_proj_bias"); }),
            "torch attention: 'a.in_proj_bias' is missing");
  EXPECT_EQ(message([](NamedArrays& s) { s.clear(); }), "torch attention: 'a.in_proj_bias' is missing");
  EXPECT_EQ(message([](NamedArrays& s) {
              s["a.out.weight"] = Array::zeros({6, 6});
            }),
            "torch attention: the layer has no place for 'a.out.weight'; " + takes);
  EXPECT_EQ(message([](NamedArrays& s) {
              s["a.q_proj_weight"] = Array::zeros({6, 6});
            }),
            "torch attention: the layer has no place for 'a.q_proj_weight'; " + takes);
  EXPECT_EQ(message([](NamedArrays& s) {
              s["a.in_proj_weight"] = Array::zeros({6, 18});
            }),
            "torch attention: 'a.in_proj_weight' has shape [6, 18], the layer needs [18, 6]");
  EXPECT_EQ(message([](NamedArrays& s) { s["a.out_proj.bias"] = Array::zeros({6}, DType::i64); }),
            "torch attention: 'a.out_proj.bias' is i64, not f32 or f64");
  for (const std::string name : {"a.bias_k", "a.bias_v"}) {
    EXPECT_EQ(
        message([&](NamedArrays& s) {
          s[name] = Array::zeros({1, 1, 6});
        }),
        "torch attention: '" + name +
            "' is a learned key or value beside the sequence (add_bias_kv), which the layer does not have");
  }
}

TEST(TorchAttention, RefusesLayersThatPyTorchDoesNotHave) {
  const auto message = [](const MultiHeadAttention::Options& o) {
    MultiHeadAttention layer(o);
    const std::string text = error_of([&] { load_torch_attention(layer, torch_state(true)); });
    EXPECT_EQ(error_of([&] { torch_attention_state(layer); }), text);
    return text;
  };
  const std::string needs =
      "torch attention: needs heads·d_k and heads·d_v of d_model 6 and as many key/value heads as heads, "
      "not ";
  EXPECT_EQ(message({.d_model = 6, .heads = 2, .kv_heads = 1}), needs + "heads 2, kv_heads 1, d_k 3, d_v 3");
  EXPECT_EQ(message({.d_model = 6, .heads = 2, .d_v = 4}), needs + "heads 2, kv_heads 2, d_k 3, d_v 4");
  EXPECT_EQ(message({.d_model = 6, .heads = 2, .out_proj = false}),
            "torch attention: needs a layer with an output projection");
  EXPECT_EQ(message({.d_model = 6, .heads = 2, .sink = true}),
            "torch attention: the layer's 'sink' has no place in nn.MultiheadAttention");
}

TEST(TorchAttention, MasksByHeadAndAdditiveOnes) {
  MultiHeadAttention layer(options(true));
  load_torch_attention(layer, torch_state(true));
  Random random(4, Stream::statistics);
  const Tensor x(random_array(random, {2, 5, 6}, DType::f32));
  // Another key is blocked for every example and head; blocked by True or by an added −∞ is the same.
  Array mask = Array::zeros({2 * 3, 5, 5}, DType::u8);
  Array bias = Array::zeros({2 * 3, 5, 5});
  Array allowed = Array::full({2, 3, 5, 5}, 1, DType::u8);
  for (std::int64_t piece = 0; piece < 6; ++piece) {
    for (std::int64_t i = 0; i < 5; ++i) {
      const std::int64_t at = (piece * 5 + i) * 5 + (piece + i) % 5;
      mask.data<std::uint8_t>()[at] = 1;
      bias.data<float>()[at] = -std::numeric_limits<float>::infinity();
      allowed.data<std::uint8_t>()[at] = 0;
    }
  }
  const Array want = layer(x, {.mask = Mask::allow(allowed)}).out.value();
  EXPECT_TRUE(same_bits(layer(x, {.mask = torch_attn_mask(mask, 3)}).out.value(), want));
  expect_close(layer(x, {.mask = torch_attn_mask(bias, 3)}).out.value(), want, 1e-6);
  EXPECT_FALSE(close(layer(x).out.value(), want, 1e-3));
  EXPECT_EQ(error_of([&] { torch_attn_mask(mask, 4); }), "torch attn_mask: 6 is not a multiple of 4 heads");
  EXPECT_EQ(error_of([&] { torch_attn_mask(allowed, 3); }),
            "torch attn_mask: needs [n_q, n_k] or [batch·heads, n_q, n_k], not [2, 3, 5, 5]");
  EXPECT_EQ(error_of([&] {
              torch_attn_mask(Array::zeros({5, 5}, DType::i64), 3);
            }),
            "torch attn_mask: needs u8, f32 or f64, not i64");
  EXPECT_EQ(error_of([&] {
              torch_key_padding_mask(Array::zeros({2, 5}));
            }),
            "torch key_padding_mask: needs u8 [batch, n_k], not f32 [2, 5]");
}

}  // namespace
}  // namespace headlab
