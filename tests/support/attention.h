// What the attention tests share: random inputs, reference cases.
#pragma once

#include <string>

#include "framework/autograd/backward.h"
#include "framework/ops/attention.h"
#include "framework/ops/shaping.h"
#include "tests/support/goldens.h"
#include "tests/support/random_array.h"

namespace headlab {

struct AttentionSizes {
  std::int64_t batch = 2, heads = 3, kv_heads = 3, n_q = 5, n_k = 7, d_k = 5, d_v = 5;
};

/// q, k, v as leaves that want gradients.
struct AttentionCase {
  AttentionCase(Random& random, const AttentionSizes& s, DType dtype)
      : q(random_array(random, {s.batch, s.n_q, s.heads * s.d_k}, dtype), true),
        k(random_array(random, {s.batch, s.n_k, s.kv_heads * s.d_k}, dtype), true),
        v(random_array(random, {s.batch, s.n_k, s.kv_heads * s.d_v}, dtype), true) {}
  Tensor q, k, v;
};

/// One case of the attention goldens ([B, heads, n, d] layout there), through the op and through its
/// composite.
inline void check_attention_golden(const Golden& golden, const nlohmann::json& c, DType dtype) {
  const auto name = c.at("name").get<std::string>();
  const double tolerance = dtype == DType::f64 ? 1e-10 : 1e-5;
  const auto rows = [](const Tensor& x) {  // [B, h, n, d] → [B, n, h·d]
    const Shape s = x.shape();
    return reshape(transpose(x, {0, 2, 1, 3}), {s[0], s[2], s[1] * s[3]});
  };
  for (const bool composite_path : {false, true}) {
    SCOPED_TRACE(composite_path ? "composite" : "fused");
    std::vector<std::string> names{"q", "k", "v"};
    for (const char* extra : {"bias", "sink"}) {
      if (golden.has(name + "." + extra)) names.emplace_back(extra);
    }
    std::vector<Tensor> in;
    for (const auto& n : names) in.emplace_back(golden(name + "." + n, dtype), true);
    Mask mask;
    if (golden.has(name + ".allow")) mask = Mask::allow(golden(name + ".allow", DType::u8));
    if (golden.has(name + ".bias")) mask = mask & Mask::bias(in[3]);
    AttentionOptions o{.heads = c.at("heads").get<std::int64_t>(),
                       .kv_heads = c.at("kv_heads").get<std::int64_t>(),
                       .mask = mask};
    if (!c.at("scale").is_null()) o.scale = c.at("scale").get<double>();
    if (!c.at("softcap").is_null()) o.softcap = c.at("softcap").get<double>();
    if (golden.has(name + ".sink")) o.sink = in.back();
    const Tensor q = rows(in[0]);
    const Tensor k = rows(in[1]);
    const Tensor v = rows(in[2]);
    const AttentionResult r = composite_path ? composite::attention(q, k, v, o) : attention(q, k, v, o);
    const Array want = golden(name + ".out", dtype);
    const Shape s = want.shape();
    const Tensor out = transpose(reshape(r.out, {s[0], s[2], s[1], s[3]}), {0, 2, 1, 3});
    expect_close(out.value(), want, tolerance, "out");
    if (composite_path)
      expect_close(r.weights.value(), golden(name + ".weights", dtype), tolerance, "weights");
    backward(out, {.seed = golden(name + ".d_out", dtype)});
    for (std::size_t i = 0; i < in.size(); ++i) {
      expect_close(in[i].grad(), golden(name + ".d_" + names[i], dtype), tolerance, "d_" + names[i]);
    }
  }
}

}  // namespace headlab
