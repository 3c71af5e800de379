// Weights and masks of PyTorch's nn.MultiheadAttention. Names and shapes in its state dict, as safetensors
// hold it:
//
// - in_proj_weight [3·d, d]: W_Q, W_K, W_V one below the other; or, where kdim or vdim is not d,
//   q_proj_weight [d, d], k_proj_weight [d, kdim] and v_proj_weight [d, vdim];
// - out_proj.weight [d, d];
// - in_proj_bias [3·d] and out_proj.bias [d], both absent with bias=False.
#pragma once

#include <cstdint>
#include <string>

#include "framework/files/safetensors.h"
#include "framework/nn/attention.h"

namespace headlab {

/// Replaces the layer's weights with those named prefix + "in_proj_weight" and so on; other names that do not
/// begin with the prefix ("encoder.layers.0.self_attn.") do not matter. f32 or f64, converted to the layer's
/// type. Errors, each naming what it is about and leaving the layer as it was: a name that is missing or that
/// the layer has no place for (bias_k and bias_v of add_bias_kv among them); another shape or type; a layer
/// that is not built like PyTorch's (grouped heads, heads·d_k or heads·d_v that are not d_model, no output
/// projection, parameters of other kinds).
void load_torch_attention(MultiHeadAttention& layer, const NamedArrays& state,
                          const std::string& prefix = {});

/// Copies of the layer's weights under PyTorch's names, bit for bit. Error: a layer that is not built like
/// PyTorch's.
NamedArrays torch_attention_state(MultiHeadAttention& layer, const std::string& prefix = {});

/// attn_mask: [n_q, n_k] or [B·heads, n_q, n_k]. u8: 1 (PyTorch's True) is blocked, the reverse of
/// Mask::allow. f32 or f64: added to the scores. A row with every key blocked gives 0 here, NaN there.
/// Errors: another type or rank; a leading axis that is not a multiple of heads.
Mask torch_attn_mask(const Array& attn_mask, std::int64_t heads);

/// key_padding_mask: u8 [B, n_k], 1 (PyTorch's True) is padding. Error: another type or rank.
Mask torch_key_padding_mask(const Array& key_padding_mask);

}  // namespace headlab
