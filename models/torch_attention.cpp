#include "models/torch_attention.h"

#include <map>

#include "framework/core/check.h"

namespace headlab {

namespace {

constexpr std::string_view where = "torch attention";

const std::map<std::string, std::string>& torch_names() {
  static const std::map<std::string, std::string> names{
      {"qkv.weight", "in_proj_weight"}, {"q.weight", "q_proj_weight"}, {"k.weight", "k_proj_weight"},
      {"v.weight", "v_proj_weight"},    {"qkv.bias", "in_proj_bias"},  {"out.weight", "out_proj.weight"},
      {"out.bias", "out_proj.bias"},
  };
  return names;
}

/// Our name of every parameter of the layer, by PyTorch's. Error: the layer is not built like PyTorch's.
std::map<std::string, std::string> layout_of(MultiHeadAttention& layer) {
  const MultiHeadAttention::Options& o = layer.options();
  check(o.kv_heads == o.heads && o.heads * o.d_k == o.d_model && o.heads * o.d_v == o.d_model, where,
        "needs heads·d_k and heads·d_v of d_model {} and as many key/value heads as heads, not heads {}, "
        "kv_heads {}, d_k {}, d_v {}",
        o.d_model, o.heads, o.kv_heads, o.d_k, o.d_v);
  check(o.out_proj, where, "needs a layer with an output projection");
  std::map<std::string, std::string> ours;
  for (const NamedParameter& named : layer.parameters()) {
    const auto found = torch_names().find(named.path);
    check(found != torch_names().end(), where, "the layer's '{}' has no place in nn.MultiheadAttention",
          named.path);
    ours[found->second] = named.path;
  }
  return ours;
}

void check_known(const std::string& full, const std::string& name,
                 const std::map<std::string, std::string>& ours) {
  check(name != "bias_k" && name != "bias_v", where,
        "'{}' is a learned key or value beside the sequence (add_bias_kv), which the layer does not have",
        full);
  if (ours.count(name) != 0) return;
  std::string has;
  for (const auto& entry : ours) has += (has.empty() ? "'" : ", '") + entry.first + "'";
  fail(where, "the layer has no place for '{}'; it takes {}", full, has);
}

/// 1 where PyTorch says 0.
Array flipped(const Array& blocked) {
  Array allowed(blocked.shape(), DType::u8);
  for (std::int64_t i = 0; i < blocked.size(); ++i)
    allowed.data<std::uint8_t>()[i] = blocked.data<std::uint8_t>()[i] == 0 ? 1 : 0;
  return allowed;
}

}  // namespace

void load_torch_attention(MultiHeadAttention& layer, const NamedArrays& state, const std::string& prefix) {
  const std::map<std::string, std::string> ours = layout_of(layer);
  std::map<std::string, Shape> shapes;
  for (const NamedParameter& named : layer.parameters())
    shapes[named.path] = named.parameter->tensor().shape();
  std::map<std::string, Array> loaded;
  for (const auto& [full, array] : state) {
    if (!full.starts_with(prefix)) continue;
    const std::string name = full.substr(prefix.size());
    check_known(full, name, ours);
    check(static_cast<bool>(array), where, "'{}' is absent", full);
    check(array.dtype() == DType::f32 || array.dtype() == DType::f64, where, "'{}' is {}, not f32 or f64",
          full, name_of(array.dtype()));
    const Shape& want = shapes.at(ours.at(name));
    check(array.shape() == want, where, "'{}' has shape {}, the layer needs {}", full, array.shape(), want);
    loaded[ours.at(name)] = array;
  }
  for (const auto& [theirs, our] : ours)
    check(loaded.count(our) != 0, where, "'{}' is missing", prefix + theirs);
  layer.load_state(loaded);
}

NamedArrays torch_attention_state(MultiHeadAttention& layer, const std::string& prefix) {
  const std::map<std::string, std::string> ours = layout_of(layer);
  const std::map<std::string, Array> state = layer.state();
  NamedArrays result;
  for (const auto& [theirs, our] : ours) result[prefix + theirs] = state.at(our);
  return result;
}

Mask torch_attn_mask(const Array& given, std::int64_t heads) {
  check(heads >= 1, "torch attn_mask", "heads {} must be at least 1", heads);
  const Shape& s = given.shape();
  check(given && (s.rank() == 2 || s.rank() == 3), "torch attn_mask",
        "needs [n_q, n_k] or [batch·heads, n_q, n_k], not {}", s);
  check(s.rank() == 2 || s[0] % heads == 0, "torch attn_mask", "{} is not a multiple of {} heads", s[0],
        heads);
  const Array mask = s.rank() == 2 ? given : given.reshape({s[0] / heads, heads, s[1], s[2]});
  if (mask.dtype() == DType::f32 || mask.dtype() == DType::f64) return Mask::bias(Tensor(mask));
  check(mask.dtype() == DType::u8, "torch attn_mask", "needs u8, f32 or f64, not {}", name_of(mask.dtype()));
  return Mask::allow(flipped(mask));
}

Mask torch_key_padding_mask(const Array& given) {
  check(given && given.rank() == 2 && given.dtype() == DType::u8, "torch key_padding_mask",
        "needs u8 [batch, n_k], not {} {}", name_of(given.dtype()), given.shape());
  return Mask::valid_keys(flipped(given));
}

}  // namespace headlab
