// The layer against values of a reference in plain loops (tests/goldens/make_attention_variants.py), on the
// streaming path and on the composite.
#include <map>
#include <vector>

#include "framework/nn/attention.h"
#include "tests/support/goldens.h"
#include "tests/support/ops.h"

namespace headlab {
namespace {

using Json = nlohmann::json;

MultiHeadAttention::Options options_of(const Json& c) {
  const auto number = [&](const char* name) { return c.at(name).get<std::int64_t>(); };
  MultiHeadAttention::Options o{.d_model = number("d_model"),
                                .heads = number("heads"),
                                .kv_heads = number("kv_heads"),
                                .d_k = number("d_k"),
                                .d_v = number("d_v"),
                                .kdim = number("kdim"),
                                .vdim = number("vdim")};
  if (c.contains("scale")) o.scale = c.at("scale").get<double>();
  if (c.contains("rotary")) {
    const Json& r = c.at("rotary");
    const bool halves = r.at(0).get<std::string>() == "halves";
    o.rotary = {.base = r.at(2).get<double>(),
                .pairing = halves ? RotaryPairing::halves : RotaryPairing::neighbours,
                .width = r.at(1).get<std::int64_t>()};
  }
  if (c.contains("relative_bias")) {
    const Json& r = c.at("relative_bias");
    o.relative_bias = {.buckets = r.at(0).get<std::int64_t>(),
                       .max_distance = r.at(1).get<std::int64_t>(),
                       .bidirectional = r.at(2).get<bool>()};
  }
  if (c.contains("qk_norm")) {
    const bool rms = c.at("qk_norm").get<std::string>() == "rms";
    o.qk_norm = rms ? MultiHeadAttention::QkNorm::rms : MultiHeadAttention::QkNorm::layer;
  }
  o.alibi = c.value("alibi", false);
  o.softcap = c.value("softcap", 0.0);
  o.sink = c.value("sink", false);
  o.window = c.value("window", std::int64_t{0});
  return o;
}

Mask mask_of(const Golden& golden, const Json& c, DType dtype) {
  const auto name = c.at("name").get<std::string>();
  Mask mask;
  if (c.value("causal", false)) mask = mask & Mask::causal();
  if (c.contains("prefix")) mask = mask & Mask::prefix(c.at("prefix").get<std::vector<std::int64_t>>());
  if (c.contains("segments")) mask = mask & Mask::segments(golden(name + ".segments"));
  if (c.contains("key_lengths"))
    mask = mask & Mask::key_lengths(c.at("key_lengths").get<std::vector<std::int64_t>>());
  if (golden.has(name + ".bias")) mask = mask & Mask::bias(Tensor(golden(name + ".bias", dtype)));
  return mask;
}

TEST(AttentionVariants, ReferenceValues) {
  const Golden golden("attention_variants");
  EXPECT_EQ(golden.cases().size(), 17U);
  for (const Json& c : golden.cases()) {
    const auto name = c.at("name").get<std::string>();
    for (const DType dtype : {DType::f64, DType::f32}) {
      SCOPED_TRACE(name + " in " + std::string(name_of(dtype)));
      const double tolerance = dtype == DType::f64 ? 1e-10 : 1e-5;
      const DefaultDType scope(dtype);
      MultiHeadAttention layer(options_of(c));
      std::map<std::string, Array> state;
      const std::string prefix = name + ".param.";
      for (const auto& [key, array] : golden.arrays()) {
        if (key.starts_with(prefix)) state[key.substr(prefix.size())] = array.to(dtype);
      }
      layer.load_state(state);
      const auto call = [&](bool weights) {
        const MultiHeadAttention::Call how{.mask = mask_of(golden, c, dtype), .weights = weights};
        const Tensor query(golden(name + ".query", dtype));
        if (!golden.has(name + ".key")) return layer(query, how);
        return layer(query, Tensor(golden(name + ".key", dtype)), Tensor(golden(name + ".value", dtype)),
                     how);
      };
      expect_close(call(false).out.value(), golden(name + ".out"), tolerance, "out");
      const MultiHeadAttention::Result with_weights = call(true);
      expect_close(with_weights.out.value(), golden(name + ".out"), tolerance, "out beside weights");
      expect_close(with_weights.weights.value(), golden(name + ".weights"), tolerance, "weights");
    }
  }
}

}  // namespace
}  // namespace headlab
