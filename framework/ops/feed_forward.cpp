#include "framework/ops/feed_forward.h"

#include "framework/autograd/node.h"
#include "framework/kernels/activation.h"
#include "framework/ops/elementwise.h"
#include "framework/ops/linear.h"
#include "framework/ops/linear_parts.h"

namespace headlab {

namespace {

// h = f(x·Uᵀ + u), into an array of its own; slope (may be absent) = f'(x·Uᵀ + u).
template <class Function>
Array hidden_numbers(const Array& x, const FeedForwardWeights& w, Array& slope) {
  const std::int64_t columns = w.up.dim(0);
  Array h(x.shape().with(-1, columns), x.dtype());
  dispatch(x.dtype(), "feed_forward", [&](auto zero) {
    using T = decltype(zero);
    T* y = h.data<T>();
    T* slopes = slope ? slope.data<T>() : nullptr;
    detail::linear_into(h, x, w.up, w.up_bias, [=](const kernels::GemmBlock& block) {
      const std::int64_t at = block.row * columns + block.column;
      kernels::activate<Function>(y + at, slopes ? slopes + at : nullptr,
                                  {block.rows, block.columns, columns});
    });
  });
  return h;
}

// With p = x·Uᵀ + u and h = f(p): dp = (dy·D)·f'(p).
Array give_hidden(const Array& dy, const Array& down, const Array& slope) {
  const std::int64_t out = down.dim(0);
  const std::int64_t columns = down.dim(1);
  Array dp(slope.shape(), slope.dtype());
  dispatch(dy.dtype(), "feed_forward", [&](auto zero) {
    using T = decltype(zero);
    T* to = dp.data<T>();
    const T* slopes = slope.data<T>();
    const auto finish = [=](const kernels::GemmBlock& block) {
      const std::int64_t at = block.row * columns + block.column;
      kernels::multiply(to + at, slopes + at, {block.rows, block.columns, columns});
    };
    using kernels::Transpose;
    kernels::gemm_bias_parallel(Transpose::no, Transpose::no, dy.shape().product(0, dy.rank() - 1), columns,
                                out, dy.data<T>(), out, down.data<T>(), columns,
                                static_cast<const T*>(nullptr), to, columns, finish);
  });
  return dp;
}

// y = h·Dᵀ + d of h = f(p), p = x·Uᵀ + u: the gradients of one linear map, dp from dy, those of the other.
template <class Function>
Tensor network(const char* op, const Tensor& x, const FeedForwardWeights& w) {
  detail::check_linear(x.shape(), x.dtype(), w.up, w.up_bias);
  const Shape inner = x.shape().with(-1, w.up.dim(0));
  detail::check_linear(inner, x.dtype(), w.down, w.down_bias);
  const std::initializer_list<Tensor> inputs{x, w.up, w.up_bias, w.down, w.down_bias};
  const bool below = needs_grad({x, w.up, w.up_bias});
  Array slope = below ? Array(inner, x.dtype()) : Array();
  Array h = hidden_numbers<Function>(x.value(), w, slope);
  Array y = detail::linear_value(h, w.down, w.down_bias);
  if (!w.down.requires_grad()) h = Array();
  return record(op, std::move(y), inputs,
                [x = Saved(x, op, w.up.requires_grad()), up = Saved(w.up, op, x.requires_grad()),
                 down = Saved(w.down, op, below), h = std::move(h), slope](const Array& dy, Sinks dx) {
                  if (dx[3]) detail::give_linear_weight(dx[3], dy, h);
                  if (dx[4]) detail::give_linear_bias(dx[4], dy);
                  if (!dx[0] && !dx[1] && !dx[2]) return;
                  const Array dp = give_hidden(dy, down.get(), slope);
                  if (dx[0]) detail::give_linear_x(dx[0], dp, up.get());
                  if (dx[1]) detail::give_linear_weight(dx[1], dp, x.get());
                  if (dx[2]) detail::give_linear_bias(dx[2], dp);
                });
}

}  // namespace

Tensor feed_forward_gelu(const Tensor& x, const FeedForwardWeights& weights) {
  return network<kernels::Gelu>("feed_forward_gelu", x, weights);
}
Tensor feed_forward_gelu_exact(const Tensor& x, const FeedForwardWeights& weights) {
  return network<kernels::GeluExact>("feed_forward_gelu_exact", x, weights);
}

namespace composite {
Tensor feed_forward_gelu(const Tensor& x, const FeedForwardWeights& w) {
  const Tensor hidden = gelu(linear(x, w.up, w.up_bias));
  return linear(hidden, w.down, w.down_bias);
}
Tensor feed_forward_gelu_exact(const Tensor& x, const FeedForwardWeights& w) {
  const Tensor hidden = gelu_exact(linear(x, w.up, w.up_bias));
  return linear(hidden, w.down, w.down_bias);
}
}  // namespace composite

}  // namespace headlab
