#include "framework/train/known_layer.h"

#include "framework/nn/attention.h"
#include "framework/nn/embedding.h"
#include "framework/nn/feed_forward.h"
#include "framework/nn/linear.h"
#include "framework/nn/norm.h"

namespace headlab {

std::vector<KnownLayer> built_in_layers() {
  using Inputs = std::span<const Tensor>;
  using Attention = MultiHeadAttention;
  std::vector<KnownLayer> layers{
      known_layer<Attention>(
          "attention", "multi-head self attention, causal, rotary",
          Attention::Options{.d_model = 12, .heads = 3, .rotary = Attention::Rotary{}}, {{{2, 5, 12}}},
          [](Attention& layer, Inputs x) { return layer(x[0], {.mask = Mask::causal()}).out; }),
      known_layer<Attention>("cross-attention", "queries of one sequence, keys and values of another",
                             Attention::Options{.d_model = 8, .heads = 2, .kdim = 7, .vdim = 5},
                             {{{2, 3, 8}}, {{2, 5, 7}}, {{2, 5, 5}}},
                             [](Attention& layer, Inputs x) { return layer(x[0], x[1], x[2]).out; }),
      known_layer<Linear>("linear", "y = x Wᵀ + b", Linear::Options{.in = 5, .out = 7}, {{{2, 3, 5}}},
                          [](Linear& layer, Inputs x) { return layer(x[0]); }),
      known_layer<FeedForward>("feed-forward", "down(gelu(up(x)))",
                               FeedForward::Options{.d_model = 5, .hidden = 11}, {{{2, 3, 5}}},
                               [](FeedForward& layer, Inputs x) { return layer(x[0]); }),
      known_layer<LayerNorm>("layer-norm", "normalisation by mean and variance",
                             LayerNorm::Options{.d_model = 7}, {{{2, 3, 7}}},
                             [](LayerNorm& layer, Inputs x) { return layer(x[0]); }),
      known_layer<RMSNorm>("rms-norm", "normalisation by root mean square", RMSNorm::Options{.d_model = 7},
                           {{{2, 3, 7}}}, [](RMSNorm& layer, Inputs x) { return layer(x[0]); }),
      known_layer<Embedding>("embedding", "a table of vectors looked up by id",
                             Embedding::Options{.vocabulary = 11, .d_model = 5}, {{{2, 3}, 11}},
                             [](Embedding& layer, Inputs x) { return layer(x[0].value()); }),
  };
  layers[0].large = {{{512, 5, 12}}};
  layers[1].large = {{{512, 3, 8}}, {{512, 5, 7}}, {{512, 5, 5}}};
  return layers;
}

}  // namespace headlab
