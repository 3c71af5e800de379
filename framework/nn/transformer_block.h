// A transformer block: self attention, optionally cross attention, optionally a feed-forward network; each
// with its residual.
#pragma once

#include <optional>

#include "framework/nn/attention.h"
#include "framework/nn/feed_forward.h"
#include "framework/nn/norm.h"

namespace headlab {

class TransformerBlock : public Module {
 public:
  /// pre: x + f(norm(x)) (GPT-2); post: norm(x + f(x)) (Vaswani et al. 2017).
  enum class Order { pre, post };
  struct Options {
    MultiHeadAttention::Options attention = {};  ///< of self attention, and of cross attention but for
                                                 ///< `cross`, and for positions and smeared keys
    bool cross_attention = false;
    std::optional<std::int64_t> cross_heads = {};           ///< of cross attention, where it has others
    std::optional<FeedForward::Options> feed_forward = {};  ///< absent: attention only
    Order order = Order::pre;
    bool norm_bias = true;
    double norm_epsilon = 1e-5;
    double dropout = 0;  ///< of what attention adds to the residual stream
  };
  explicit TransformerBlock(const Options& options);

  struct Memory {
    Tensor value;    ///< what cross attention reads, [B, n_k, d_model]
    Mask mask = {};  ///< which of it
  };
  /// x [B, T, d_model] → [B, T, d_model]; with a cache, of tokens that go on behind those of earlier calls.
  /// Error: cross attention without memory.
  Tensor operator()(const Tensor& x, const Mask& mask, const Memory& memory, KeyValueCache* cache = nullptr);
  Tensor operator()(const Tensor& x, const Mask& mask) { return (*this)(x, mask, Memory{}); }

  /// The same in parts, each ending where heads' contexts are ready, for whoever changes them many times:
  /// z = attend(x, mask); y = after_attention(x, z); with cross attention zc = attend_cross(y, memory),
  /// y = after_cross(y, zc); and feed(y) at the end. Together they give the bits of a call. With `from` only
  /// contexts of positions from there on, which go on with those positions of x.
  Tensor attend(const Tensor& x, const Mask& mask, std::int64_t from = 0);
  Tensor after_attention(const Tensor& x, const Tensor& contexts);
  Tensor attend_cross(const Tensor& x, const Memory& memory);
  Tensor after_cross(const Tensor& x, const Tensor& contexts);
  Tensor feed(const Tensor& x);

  Child<LayerNorm> norm_attn;
  Child<MultiHeadAttention> attn;
  std::optional<Child<LayerNorm>> norm_cross;
  std::optional<Child<MultiHeadAttention>> cross;
  std::optional<Child<LayerNorm>> norm_mlp;
  std::optional<Child<FeedForward>> mlp;

 private:
  Order order_;
  Child<Dropout> dropout_;
};

}  // namespace headlab
