#include "models/parts.h"

#include <cmath>

#include "framework/ops/arithmetic.h"
#include "framework/ops/embedding.h"
#include "framework/ops/linear.h"
#include "framework/ops/shaping.h"

namespace headlab {

Init matrix_init(const Needs& needs, bool residual) {
  Init init;
  switch (needs.weights) {
    case Needs::Weights::xavier_normal:
      init = Init::xavier_normal();
      break;
    case Needs::Weights::xavier_uniform:
      init = Init::xavier_uniform();
      break;
    case Needs::Weights::fan_in:
      init = Init::fan_in();
      break;
    case Needs::Weights::fixed:
      init = Init::normal(needs.weight_std);
      break;
  }
  if (!residual || !needs.smaller_residual_weights) return init;
  return init.scaled(1 / std::sqrt(2 * static_cast<double>(needs.layers)));
}

void check_layer_heads(const Needs& needs, std::int64_t layers, std::string_view where) {
  if (needs.layer_heads.empty()) return;
  check(std::ssize(needs.layer_heads) == layers, where, "heads for {} layers of attention, the model has {}",
        needs.layer_heads.size(), layers);
  check(needs.head_size > 0, where, "heads that differ between layers need a head size");
  for (const std::int64_t heads : needs.layer_heads) {
    check(heads >= 0, where, "a layer of {} heads", heads);
  }
}

TransformerBlock::Options block_options(const Needs& needs, Stack stack, std::int64_t layer) {
  const bool with_cross = stack == Stack::decoder_with_cross;
  const std::int64_t number = with_cross ? needs.layers + 2 * layer : layer;
  TransformerBlock::Options o;
  if (with_cross) o.cross_heads = needs.heads_of(number + 1);
  o.attention = {.d_model = needs.d_model,
                 .heads = needs.heads_of(number),
                 .d_k = needs.head_size,
                 .bias = needs.attention_bias,
                 .dropout = needs.dropout,
                 .weights = matrix_init(needs, false),
                 .out_weights = matrix_init(needs, true)};
  if (needs.positions == Needs::Positions::rotary) {
    o.attention.rotary =
        MultiHeadAttention::Rotary{.base = needs.rotary_base, .pairing = RotaryPairing::halves};
  }
  if (needs.positions == Needs::Positions::relative) {
    const bool encoder = stack == Stack::encoder;
    const bool causal = stack == Stack::decoder_with_cross || (stack == Stack::decoder && needs.causal);
    o.attention.relative_keys =
        MultiHeadAttention::RelativeKeys{.reach = encoder ? needs.source_context : needs.context,
                                         .std = needs.position_std,
                                         .bidirectional = !causal};
  }
  o.attention.smeared_keys = needs.smeared_keys;
  o.cross_attention = stack == Stack::decoder_with_cross;
  if (needs.mlp > 0) {
    o.feed_forward = FeedForward::Options{.d_model = needs.d_model,
                                          .hidden = needs.mlp,
                                          .activation = needs.activation == Needs::Activation::gelu_exact
                                                            ? FeedForward::Activation::gelu_exact
                                                            : FeedForward::Activation::gelu_tanh,
                                          .bias = needs.mlp_bias,
                                          .dropout = needs.dropout,
                                          .weights = matrix_init(needs, false),
                                          .down_weights = matrix_init(needs, true)};
  }
  o.norm_bias = needs.norm_bias;
  o.norm_epsilon = needs.norm_epsilon;
  o.dropout = needs.dropout;
  return o;
}

InputEmbedding::InputEmbedding(const Options& o) : context_(o.context) {
  check(o.streams.empty() == (o.patch_width > 0), "InputEmbedding",
        "needs streams of tokens or patches, not {} streams and patches {} wide", o.streams.size(),
        o.patch_width);
  check(o.patch_width > 0 || !o.class_token, "InputEmbedding", "a class token goes with patches");
  for (const Needs::Tokens& stream : o.streams) {
    tables_.push_back(
        std::make_unique<Embedding>(Embedding::Options{.vocabulary = stream.vocabulary,
                                                       .d_model = o.d_model,
                                                       .weights = Init::normal(stream.embedding_std)}));
    tables_.back()->attach(this, stream.name);
  }
  if (o.patch_width > 0) {
    patch_.emplace(this, "patch",
                   Linear::Options{.in = o.patch_width, .out = o.d_model, .weights = o.patch_weights});
  }
  if (o.class_token) {
    class_.emplace(this, "class", Shape{1, o.d_model}, Init::normal(o.class_std), Role::embedding);
  }
  if (o.learned_positions) {
    position_.emplace(this, "position",
                      Embedding::Options{.vocabulary = o.context,
                                         .d_model = o.d_model,
                                         .weights = Init::normal(o.position_std),
                                         .role = Role::position});
  }
}

Tensor InputEmbedding::operator()(std::span<const Array> streams, std::int64_t first) {
  if (patch_) return of_patches(streams);
  check(streams.size() == tables_.size(), "model", "{} streams of tokens, the model reads {}", streams.size(),
        tables_.size());
  const Shape& shape = streams[0].shape();
  check(shape.rank() == 2, "model", "tokens need shape [batch, tokens], not {}", shape);
  check(first + shape[1] <= context_, "model", "{} tokens are more than the context of {}", first + shape[1],
        context_);
  Tensor x;
  for (std::size_t i = 0; i < streams.size(); ++i) {
    check(streams[i].shape() == shape, "model", "streams of shapes {} and {} do not go together", shape,
          streams[i].shape());
    const Tensor e = (*tables_[i])(streams[i]);
    x = x ? add(x, e) : e;
  }
  if (!position_) return x;
  const Tensor positions = slice((*position_)->weight, 0, first, first + shape[1]);
  return add(x, positions);
}

Tensor InputEmbedding::of_patches(std::span<const Array> inputs) {
  check(inputs.size() == 1 && inputs[0].rank() == 3, "model",
        "needs one array of patches [batch, patches, width]");
  Tensor x = (*patch_)(Tensor(inputs[0]));
  const Shape shape = x.shape();
  if (class_) {
    const Array zeros = Array::zeros({shape[0]}, DType::i64);
    const Tensor first = reshape(embedding(zeros, *class_), {shape[0], 1, shape[2]});
    x = concat({first, x}, 1);
  }
  check(x.dim(1) <= context_, "model", "{} positions are more than the context of {}", x.dim(1), context_);
  if (!position_) return x;
  const Tensor positions = slice((*position_)->weight, 0, 0, x.dim(1));
  return add(x, positions);
}

Readout::Readout(const Needs& needs)
    : norm(this, "norm",
           LayerNorm::Options{
               .d_model = needs.d_model, .bias = needs.norm_bias, .epsilon = needs.norm_epsilon}) {
  if (needs.tied_readout) return;
  linear.emplace(this, "linear",
                 Linear::Options{.in = needs.d_model,
                                 .out = needs.logits(),
                                 .bias = needs.readout_bias,
                                 .weights = matrix_init(needs, false)});
}

Tensor Readout::operator()(const Tensor& x, const Tensor& tied) {
  const Tensor normed = norm(x);
  return linear ? (*linear)(normed) : headlab::linear(normed, tied, Tensor());
}

}  // namespace headlab
