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

void check_lengths(const std::vector<std::int64_t>& lengths, std::string_view where) {
  for (const std::int64_t n : lengths) check(n >= 0, where, "{} is negative", n);
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
  check_lengths(lengths, "Mask::key_lengths");
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
Mask Mask::prefix(std::vector<std::int64_t> lengths) {
  check_lengths(lengths, "Mask::prefix");
  Mask mask;
  mask.prefix_ = std::move(lengths);
  return mask;
}
Mask Mask::segments(const Array& ids) {
  check(ids && ids.dtype() == DType::i64, "Mask::segments", "needs an array of i64, not {}",
        ids ? name_of(ids.dtype()) : "an absent one");
  check(ids.rank() == 2, "Mask::segments", "needs shape [batch or 1, n_k], not {}", ids.shape());
  const std::int64_t n = ids.dim(1);
  Mask mask;
  mask.segments_ = Array({ids.dim(0), n, 2}, DType::i64);
  for (std::int64_t b = 0; b < ids.dim(0); ++b) {
    const std::int64_t* id = ids.data<std::int64_t>() + b * n;
    std::int64_t* to = mask.segments_.data<std::int64_t>() + b * n * 2;
    for (std::int64_t first = 0, last = 0; first < n; first = last) {
      for (last = first; last < n && id[last] == id[first]; ++last) to[2 * last] = first;
      for (std::int64_t key = first; key < last; ++key) to[2 * key + 1] = last;
      check(last == n || id[last] > id[first], "Mask::segments", "ids decrease at [{}, {}]: {} after {}", b,
            last, last < n ? id[last] : 0, id[first]);
    }
  }
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

std::vector<Mask::Part> Mask::parts() const {
  std::vector<Part> list;
  const auto add = [&](bool here, std::string_view name, std::int64_t batch, std::int64_t keys) {
    if (here) list.push_back({name, batch, keys});
  };
  const auto rows = [](const Shape& shape) { return shape[0] == 1 ? any : shape[0]; };
  add(causal_, "causal", any, any);
  add(upper_left_, "causal_upper_left", any, any);
  add(prefix_.has_value(), "prefix", prefix_ ? std::ssize(*prefix_) : any, any);
  if (segments_) add(true, "segments", rows(segments_.shape()), segments_.dim(1));
  if (allow_) add(true, "allow", rows(allow_.shape()), allow_.dim(3));
  if (bias_) add(true, "bias", rows(bias_.shape()), bias_.dim(3));
  if (valid_) add(true, "valid_keys", valid_.dim(0), valid_.dim(1));
  add(!lengths_.empty(), "key_lengths", std::ssize(lengths_), any);
  return list;
}

namespace {

// Pairs that cannot both be meant, in either order, and why.
struct Contradiction {
  std::string_view a, b, reason;
};
constexpr Contradiction contradictions[] = {
    {"causal", "causal_upper_left", "they align queries with different keys"},
    {"prefix", "causal", "prefix already is causal outside its prefix, which causal would block"},
    {"prefix", "causal_upper_left", "they align queries with different keys"},
    {"prefix", "prefix", "an example has one prefix"},
    {"segments", "segments", "a key is in one segment"},
    {"segments", "prefix", "a prefix is of one sequence, segments are of several"},
};

}  // namespace

void Mask::check_joins(const Mask& a, const Mask& b) {
  for (const Part& x : a.parts()) {
    for (const Part& y : b.parts()) {
      for (const Contradiction& c : contradictions) {
        const bool meant = (x.name == c.a && y.name == c.b) || (x.name == c.b && y.name == c.a);
        check(!meant, "mask", "{} and {} do not join: {}", x.name, y.name, c.reason);
      }
      check(x.batch == any || y.batch == any || x.batch == y.batch, "mask",
            "{} for {} and {} for {} examples do not join", x.name, x.batch, y.name, y.batch);
      check(x.keys == any || y.keys == any || x.keys == y.keys, "mask",
            "{} for {} and {} for {} keys do not join", x.name, x.keys, y.name, y.keys);
    }
  }
}

Mask operator&(const Mask& a, const Mask& b) {
  Mask::check_joins(a, b);
  Mask mask;
  mask.causal_ = a.causal_ || b.causal_;
  mask.upper_left_ = a.upper_left_ || b.upper_left_;
  mask.window_ =
      a.window_ && b.window_ ? std::min(*a.window_, *b.window_) : (a.window_ ? a.window_ : b.window_);
  mask.prefix_ = a.prefix_ ? a.prefix_ : b.prefix_;
  mask.segments_ = a.segments_ ? a.segments_ : b.segments_;
  mask.allow_ = both(a.allow_, b.allow_);
  mask.valid_ = both(a.valid_, b.valid_);
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
      segments_(mask.segments_),
      bias_(mask.bias_ ? mask.bias_.value() : Array()),
      lengths_(mask.lengths_),
      prefix_(mask.prefix_) {
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
    find_spans();
  }
  check(lengths_.empty() || static_cast<std::int64_t>(lengths_.size()) == batch, where,
        "key_lengths for {} examples do not fit a batch of {}", lengths_.size(), batch);
  for (const std::int64_t n : lengths_)
    check(n <= n_k, where, "a key length of {} is over the {} keys", n, n_k);
  if (segments_) {
    check((segments_.dim(0) == 1 || segments_.dim(0) == batch) && segments_.dim(1) == n_k, where,
          "segments of shape [{}, {}] do not fit {} examples of {} keys", segments_.dim(0), segments_.dim(1),
          batch, n_k);
  }
  if (!prefix_) return;
  check(std::ssize(*prefix_) == batch, where, "prefix for {} examples does not fit a batch of {}",
        prefix_->size(), batch);
  for (const std::int64_t n : *prefix_) check(n <= n_k, where, "a prefix of {} is over the {} keys", n, n_k);
}

// Keys outside a row's range cost nothing, unlike keys that are looked up one by one; but ranges of their own
// for each example have a price, which a little padding is not worth.
void ResolvedMask::find_spans() {
  std::int64_t outside = 0;
  for (std::int64_t b = 0; b < valid_.dim(0); ++b) {
    const std::uint8_t* valid = valid_.data<std::uint8_t>() + b * n_k_;
    Span span{0, n_k_};
    while (span.first < span.last && valid[span.first] == 0) ++span.first;
    while (span.last > span.first && valid[span.last - 1] == 0) --span.last;
    outside += n_k_ - (span.last - span.first);
    spans_.push_back(span);
  }
  if (outside == 0 || outside * 8 < valid_.size()) spans_.clear();
}

ResolvedMask::Row ResolvedMask::row(std::int64_t example, std::int64_t head, std::int64_t query) const {
  Row row{0, n_k_, nullptr, nullptr, -1};
  const std::int64_t diagonal = query + n_k_ - n_q_;  // the key at δ = 0
  if (causal_) row.last = std::min(row.last, diagonal + 1);
  if (upper_left_) row.last = std::min(row.last, query + 1);
  if (prefix_) row.last = std::max(diagonal + 1, (*prefix_)[static_cast<std::size_t>(example)]);
  if (segments_ && diagonal < 0) row.last = 0;
  if (segments_ && diagonal >= 0) {
    const std::int64_t b = segments_.dim(0) == 1 ? 0 : example;
    const std::int64_t* own = segments_.data<std::int64_t>() + (b * n_k_ + diagonal) * 2;
    row.first = own[0];
    row.last = std::min(row.last, own[1]);
  }
  if (window_ > 0) {
    row.first = std::max(row.first, diagonal - window_ + 1);
    row.last = std::min(row.last, diagonal + window_);
  }
  if (!lengths_.empty()) row.last = std::min(row.last, lengths_[static_cast<std::size_t>(example)]);
  if (!spans_.empty()) {
    const Span& span = spans_[static_cast<std::size_t>(example)];
    row.first = std::max(row.first, span.first);
    row.last = std::min(row.last, span.last);
  }
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
