#include "framework/nn/transformer_block.h"

#include "framework/ops/arithmetic.h"

namespace headlab {

namespace {

LayerNorm::Options norm_options(const TransformerBlock::Options& o) {
  return {.d_model = o.attention.d_model, .bias = o.norm_bias, .epsilon = o.norm_epsilon};
}

// One sub-layer with its norm and residual.
template <class F>
Tensor residual(const Tensor& x, TransformerBlock::Order order, Child<LayerNorm>& norm, F&& f) {
  if (order == TransformerBlock::Order::pre) {
    const Tensor change = f(norm(x));
    return add(x, change);
  }
  const Tensor change = f(x);
  return norm(add(x, change));
}

}  // namespace

TransformerBlock::TransformerBlock(const Options& o)
    : norm_attn(this, "norm_attn", norm_options(o)),
      attn(this, "attn", o.attention),
      order_(o.order),
      dropout_(this, "dropout", o.dropout) {
  if (o.cross_attention) {
    MultiHeadAttention::Options options = o.attention;
    options.cross = true;
    options.rotary.reset();
    options.heads = o.cross_heads.value_or(options.heads);
    options.relative_keys.reset();
    options.smeared_keys = false;
    norm_cross.emplace(this, "norm_cross", norm_options(o));
    cross.emplace(this, "cross", options);
  }
  if (o.feed_forward) {
    norm_mlp.emplace(this, "norm_mlp", norm_options(o));
    mlp.emplace(this, "mlp", *o.feed_forward);
  }
}

Tensor TransformerBlock::operator()(const Tensor& x, const Mask& mask, const Memory& memory,
                                    KeyValueCache* cache) {
  const profile::LayerScope scope(*this);  // blocks stand in lists, whose items are called as they are
  Tensor y = residual(x, order_, norm_attn, [&](const Tensor& in) {
    return dropout_((*attn)(in, {.mask = mask, .cache = cache}).out);
  });
  if (cross) {
    check(static_cast<bool>(memory.value), "TransformerBlock", "cross attention needs a memory");
    y = residual(y, order_, *norm_cross, [&](const Tensor& in) {
      return dropout_((**cross)(in, memory.value, memory.value, {.mask = memory.mask}).out);
    });
  }
  return feed(y);
}

Tensor TransformerBlock::feed(const Tensor& x) {
  if (!mlp) return x;
  return residual(x, order_, *norm_mlp, [&](const Tensor& in) { return (*mlp)(in); });
}

Tensor TransformerBlock::attend(const Tensor& x, const Mask& mask, std::int64_t from) {
  return attn->contexts(order_ == Order::pre ? norm_attn(x) : x, {.mask = mask, .from = from});
}

Tensor TransformerBlock::after_attention(const Tensor& x, const Tensor& contexts) {
  const Tensor change = dropout_(attn->combine(contexts));
  const Tensor y = add(x, change);
  return order_ == Order::pre ? y : norm_attn(y);
}

Tensor TransformerBlock::attend_cross(const Tensor& x, const Memory& memory) {
  check(cross && memory.value, "TransformerBlock", "cross attention needs a memory");
  const Tensor query = order_ == Order::pre ? (*norm_cross)(x) : x;
  return (*cross)->contexts(query, memory.value, memory.value, {.mask = memory.mask});
}

Tensor TransformerBlock::after_cross(const Tensor& x, const Tensor& contexts) {
  const Tensor change = dropout_((*cross)->combine(contexts));
  const Tensor y = add(x, change);
  return order_ == Order::pre ? y : (*norm_cross)(y);
}

}  // namespace headlab
