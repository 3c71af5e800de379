// Parts that the models share: everything follows from Needs.
#pragma once

#include "framework/data/needs.h"
#include "framework/nn/embedding.h"
#include "framework/nn/transformer_block.h"

namespace headlab {

/// Which of the three kinds of stack a block belongs to.
enum class Stack { decoder, encoder, decoder_with_cross };
/// `layer` counts blocks of the stack.
TransformerBlock::Options block_options(const Needs& needs, Stack stack, std::int64_t layer);
/// Error, naming `where`: layer_heads that are not one for each of `layers` attention layers, negative or
/// without a head_size.
void check_layer_heads(const Needs& needs, std::int64_t layers, std::string_view where);
/// The rule for matrices; `residual`: of those that write to the residual stream.
Init matrix_init(const Needs& needs, bool residual);

/// Token embeddings of one or more streams, added, or patches behind a class token; plus learned positions
/// where the model has them.
class InputEmbedding : public Module {
 public:
  struct Options {
    std::vector<Needs::Tokens> streams;
    std::int64_t context = 0;
    std::int64_t d_model = 0;
    bool learned_positions = true;
    double position_std = 0;
    std::int64_t patch_width = 0;  ///< in place of streams
    Init patch_weights = {};
    bool class_token = false;
    double class_std = 0;
  };
  explicit InputEmbedding(const Options& options);
  /// One i64 array [B, T] a stream → [B, T, d_model], the first of the tokens at position `first`; or one f32
  /// array of patches [B, n, patch_width], without `first`. Errors: positions beyond the context; shapes that
  /// differ.
  Tensor operator()(std::span<const Array> streams, std::int64_t first = 0);
  /// The table of the last stream, for a tied read-out.
  Embedding& last_table() { return *tables_.back(); }

 private:
  Tensor of_patches(std::span<const Array> inputs);

  std::int64_t context_;
  std::vector<std::unique_ptr<Embedding>> tables_;
  std::optional<Child<Linear>> patch_;
  std::optional<Parameter> class_;
  std::optional<Child<Embedding>> position_;
};

/// Final norm and read-out.
class Readout : public Module {
 public:
  explicit Readout(const Needs& needs);
  /// x [B, T, d_model] → [B, T, logits]; `tied` is the table to use when the model has no read-out of its
  /// own.
  Tensor operator()(const Tensor& x, const Tensor& tied);

  Child<LayerNorm> norm;
  std::optional<Child<Linear>> linear;
};

}  // namespace headlab
