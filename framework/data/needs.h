// What a task needs of a model, as plain data. `models` builds from it and from nothing else, so a new task
// costs no new model code.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace headlab {

/// A decoder is one stack with self attention (causal or not); an encoder–decoder reads `streams[0]` as the
/// source (never causal) and `streams[1]` as the decoder's input (causal), and adds cross attention to every
/// decoder layer, after self attention. `layers` counts each stack.
enum class Architecture { decoder, encoder_decoder };

/// Everything that fixes a model except the random seed. Pre-norm throughout: x + attention(norm(x)), then,
/// where mlp > 0, x + mlp(norm(x)); each stack ends with a norm; each sub-layer has its own norm. Biases
/// start at 0, norm gains at 1.
struct Needs {
  /// Ids 0 … vocabulary − 1, looked up in a table whose entries start normal with this deviation.
  struct Tokens {
    std::string name;
    std::int64_t vocabulary = 0;
    double embedding_std = 0;
  };
  /// One softmax over `classes` logits. All read-outs together are one linear map d_model → Σ classes, the
  /// logits in the order given here.
  struct Readout {
    std::string name;
    std::int64_t classes = 0;
  };
  /// rotary turns the pairs (i, i + d_k/2) of queries and keys of self attention, over the whole head.
  /// relative: each layer of self attention adds a learned vector for the distance to the key.
  enum class Positions { none, learned, rotary, relative };
  enum class Activation { gelu_exact, gelu_tanh };
  /// xavier_normal: std √(2/(in+out)); xavier_uniform: ±√(6/(in+out)); fan_in: normal, std 1/√in;
  /// fixed: normal, std `weight_std`. Each logical matrix by itself (W_Q, W_K, W_V are three), read-out too.
  enum class Weights { xavier_normal, xavier_uniform, fan_in, fixed };

  Architecture architecture = Architecture::decoder;
  /// decoder: their embeddings are added at each position; encoder–decoder: {source, decoder input}.
  std::vector<Tokens> streams;
  /// A decoder without streams may read vectors instead, this long; one matrix with bias maps them to
  /// d_model.
  std::int64_t patch_width = 0;
  /// Only with patches: a learned vector (normal with class_std) stands at position 0, before them.
  bool class_token = false;
  double class_std = 0;
  /// The mean over all positions is what is read out at position 0.
  bool pooled = false;
  std::vector<Readout> readouts;
  /// Positions of the decoder; of the source (0 without an encoder).
  std::int64_t context = 0;
  std::int64_t source_context = 0;
  bool causal = true;

  std::int64_t layers = 1;
  std::int64_t d_model = 64;
  std::int64_t heads = 4;
  std::int64_t head_size = 0;  ///< 0: d_model / heads
  /// Of a model from which heads were removed: what is left in each attention layer, 0 included, in the order
  /// of the model's layers (the encoder's, then the decoder's self and cross attention by turns). Such a
  /// model has a head_size. Empty: `heads` in each.
  std::vector<std::int64_t> layer_heads = {};
  bool attention_bias = false;
  std::int64_t mlp = 0;  ///< hidden size; 0: attention only
  Activation activation = Activation::gelu_tanh;
  bool mlp_bias = true;
  bool norm_bias = true;
  double norm_epsilon = 1e-5;
  double dropout = 0;

  Positions positions = Positions::learned;
  double position_std = 0;
  double rotary_base = 10000;
  /// Self attention sees each key mixed with the one before, by a learned share per head.
  bool smeared_keys = false;

  Weights weights = Weights::xavier_normal;
  double weight_std = 0.02;
  /// Divides the deviation of the matrices that write to the residual stream (W_O and the MLP's second) by
  /// √(2·layers), as GPT-2 does.
  bool smaller_residual_weights = false;
  /// The read-out is the transposed table of the last stream: one parameter, and no read-out bias.
  bool tied_readout = false;
  bool readout_bias = true;

  /// Heads of the attention layer of this number. Error: no such layer in layer_heads.
  std::int64_t heads_of(std::int64_t layer) const;
  /// Σ classes.
  std::int64_t logits() const;
  /// The number of trainable numbers. A double, so that absurd sizes can be refused before they overflow.
  double parameters() const;
  /// Numbers in a head: head_size, or what d_model leaves each head.
  std::int64_t each_head() const { return head_size > 0 ? head_size : d_model / heads; }
};

/// Another width; the MLP grows with it.
void set_d_model(Needs& needs, std::int64_t d_model);

}  // namespace headlab
