#include "framework/ops/mask.h"

#include <algorithm>

#include "framework/ops/arithmetic.h"
#include "framework/ops/shaping.h"

namespace headlab {

namespace {

Shape with_four_axes(const Shape& shape, std::string_view where) {
  check(shape.rank() == 2 || shape.rank() == 4, where,
        "needs shape [n_q, n_k] or [batch, heads, n_q, n_k], not {}", shape);
  return shape.rank() == 4 ? shape : Shape{1, 1, shape[0], shape[1]};
}

Array both(const Array& a, const Array& b) {
  if (!a) return b;
  if (!b) return a;
  const Shape shape = broadcast(a.shape(), b.shape(), "mask");
  Array result(shape, DType::u8);
  const int rank = shape.rank();
  std::vector<std::int64_t> index(static_cast<std::size_t>(rank), 0);
  const auto offset = [&](const Array& x) {
    std::int64_t at = 0;
    for (int axis = 0; axis < rank; ++axis) {
      at = at * x.shape()[axis] + (x.shape()[axis] == 1 ? 0 : index[static_cast<std::size_t>(axis)]);
    }
    return at;
  };
  for (std::int64_t i = 0; i < shape.size(); ++i) {
    std::int64_t rest = i;
    for (int axis = rank - 1; axis >= 0; --axis) {
      index[static_cast<std::size_t>(axis)] = rest % shape[axis];
      rest /= shape[axis];
    }
    const bool allowed = a.data<std::uint8_t>()[offset(a)] != 0 && b.data<std::uint8_t>()[offset(b)] != 0;
    result.data<std::uint8_t>()[i] = allowed ? 1 : 0;
  }
  return result;
}

void check_bytes(const Array& mask, std::string_view where) {
  check(mask && mask.dtype() == DType::u8, where, "needs an array of u8 (1 = may attend), not {}",
        mask ? name_of(mask.dtype()) : "an absent one");
}

}  // namespace

Mask Mask::causal() {
  Mask mask;
  mask.causal_ = true;
  return mask;
}
Mask Mask::causal_upper_left() {
  Mask mask;
  mask.upper_left_ = true;
  return mask;
}
Mask Mask::window(std::int64_t n) {
  check(n >= 1, "Mask::window", "{} is not a positive width", n);
  Mask mask;
  mask.window_ = n;
  return mask;
}
Mask Mask::allow(Array allowed) {
  check_bytes(allowed, "Mask::allow");
  Mask mask;
  mask.allow_ = allowed.reshape(with_four_axes(allowed.shape(), "Mask::allow"));
  return mask;
}
Mask Mask::bias(Tensor bias) {
  const Shape shape = with_four_axes(bias.shape(), "Mask::bias");
  Mask mask;
  mask.bias_ = bias.rank() == 4 ? bias : reshape(bias, shape);
  return mask;
}
Mask Mask::key_lengths(std::vector<std::int64_t> lengths) {
  for (const std::int64_t n : lengths) check(n >= 0, "Mask::key_lengths", "{} is negative", n);
  Mask mask;
  mask.lengths_ = std::move(lengths);
  return mask;
}
Mask Mask::valid_keys(Array valid) {
  check_bytes(valid, "Mask::valid_keys");
  check(valid.rank() == 2, "Mask::valid_keys", "needs shape [batch, n_k], not {}", valid.shape());
  Mask mask;
  mask.valid_ = std::move(valid);
  return mask;
}

Mask Mask::without_bias() const {
  Mask mask = *this;
  mask.bias_ = Tensor();
  return mask;
}

Mask Mask::padding_alone() const {
  Mask mask;
  mask.valid_ = valid_;
  mask.lengths_ = lengths_;
  return mask;
}

Mask operator&(const Mask& a, const Mask& b) {
  Mask mask;
  mask.causal_ = a.causal_ || b.causal_;
  mask.upper_left_ = a.upper_left_ || b.upper_left_;
  mask.window_ =
      a.window_ && b.window_ ? std::min(*a.window_, *b.window_) : (a.window_ ? a.window_ : b.window_);
  mask.allow_ = both(a.allow_, b.allow_);
  mask.valid_ = both(a.valid_, b.valid_);
  check(a.lengths_.empty() || b.lengths_.empty() || a.lengths_.size() == b.lengths_.size(), "mask",
        "key lengths for {} and for {} examples do not join", a.lengths_.size(), b.lengths_.size());
  mask.lengths_ = a.lengths_.empty() ? b.lengths_ : a.lengths_;
  for (std::size_t i = 0; i < b.lengths_.size(); ++i)
    mask.lengths_[i] = std::min(mask.lengths_[i], b.lengths_[i]);
  mask.bias_ = a.bias_ && b.bias_ ? add(a.bias_, b.bias_) : (a.bias_ ? a.bias_ : b.bias_);
  return mask;
}

ResolvedMask::ResolvedMask(const Mask& mask, std::int64_t batch, std::int64_t heads, std::int64_t n_q,
                           std::int64_t n_k, std::string_view where)
    : causal_(mask.causal_),
      upper_left_(mask.upper_left_),
      blocks_nothing_(mask.blocks_nothing()),
      window_(mask.window_.value_or(0)),
      n_q_(n_q),
      n_k_(n_k),
      allow_(mask.allow_),
      valid_(mask.valid_),
      bias_(mask.bias_ ? mask.bias_.value() : Array()),
      lengths_(mask.lengths_) {
  const auto fits = [&](const Shape& shape, std::string_view what) {
    const bool good = (shape[0] == 1 || shape[0] == batch) && (shape[1] == 1 || shape[1] == heads) &&
                      shape[2] == n_q && shape[3] == n_k;
    check(good, where, "a mask's {} of shape {} does not fit {} examples, {} heads and scores of {} x {}",
          what, shape, batch, heads, n_q, n_k);
  };
  if (allow_) fits(allow_.shape(), "allow");
  if (bias_) fits(bias_.shape(), "bias");
  if (valid_) {
    check(valid_.dim(0) == batch && valid_.dim(1) == n_k, where,
          "valid_keys of shape {} do not fit {} examples of {} keys", valid_.shape(), batch, n_k);
  }
  check(lengths_.empty() || static_cast<std::int64_t>(lengths_.size()) == batch, where,
        "key_lengths for {} examples do not fit a batch of {}", lengths_.size(), batch);
  for (const std::int64_t n : lengths_)
    check(n <= n_k, where, "a key length of {} is over the {} keys", n, n_k);
}

ResolvedMask::Row ResolvedMask::row(std::int64_t example, std::int64_t head, std::int64_t query) const {
  Row row{0, n_k_, nullptr, nullptr, -1};
  const std::int64_t diagonal = query + n_k_ - n_q_;  // the key at δ = 0
  if (causal_) row.last = std::min(row.last, diagonal + 1);
  if (upper_left_) row.last = std::min(row.last, query + 1);
  if (window_ > 0) {
    row.first = std::max(row.first, diagonal - window_ + 1);
    row.last = std::min(row.last, diagonal + window_);
  }
  if (!lengths_.empty()) row.last = std::min(row.last, lengths_[static_cast<std::size_t>(example)]);
  row.last = std::max<std::int64_t>(row.last, 0);
  row.first = std::min(row.first, row.last);
  const auto offset = [&](const Shape& shape) {
    const std::int64_t b = shape[0] == 1 ? 0 : example;
    const std::int64_t h = shape[1] == 1 ? 0 : head;
    return ((b * shape[1] + h) * n_q_ + query) * n_k_;
  };
  if (allow_) row.allow = allow_.data<std::uint8_t>() + offset(allow_.shape());
  if (valid_) row.valid = valid_.data<std::uint8_t>() + example * n_k_;
  if (bias_) row.bias = offset(bias_.shape());
  return row;
}

bool ResolvedMask::is_padding(std::int64_t example, std::int64_t key) const {
  return (!lengths_.empty() && key >= lengths_[static_cast<std::size_t>(example)]) ||
         (valid_ && valid_.data<std::uint8_t>()[example * n_k_ + key] == 0);
}

std::int64_t ResolvedMask::allowed_keys(std::int64_t example, std::int64_t head, std::int64_t query) const {
  const Row r = row(example, head, query);
  if (!r.allow && !r.valid) return r.last - r.first;
  std::int64_t count = 0;
  for (std::int64_t key = r.first; key < r.last; ++key) {
    if ((!r.allow || r.allow[key] != 0) && (!r.valid || r.valid[key] != 0)) ++count;
  }
  return count;
}

}  // namespace headlab
