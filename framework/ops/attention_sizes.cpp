#include "framework/ops/attention_sizes.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace headlab::detail {

namespace {

void check_heads(const AttentionOptions& o, std::int64_t kv_heads) {
  check(o.heads >= 1, "attention", "heads {} is not positive", o.heads);
  check(kv_heads >= 1 && o.heads % kv_heads == 0, "attention", "kv_heads {} does not divide heads {}",
        kv_heads, o.heads);
}

AttentionSizes checked(AttentionSizes s, DType dtype, const AttentionOptions& o) {
  check(o.dropout >= 0 && o.dropout <= 1, "attention", "dropout {} is not in [0, 1]", o.dropout);
  check(o.softcap >= 0 && std::isfinite(o.softcap), "attention", "softcap {} is not a number from 0 on",
        o.softcap);
  check(s.n_q <= std::numeric_limits<std::int32_t>::max() / 2 &&
            s.n_k <= std::numeric_limits<std::int32_t>::max() / 2,
        "attention", "{} queries and {} keys are more than 2^30", s.n_q, s.n_k);
  const auto check_type = [&](const Tensor& x, std::string_view what) {
    check(!x || x.dtype() == dtype, "attention", "{} of {} for inputs of {}", what,
          x ? name_of(x.dtype()) : "", name_of(dtype));
  };
  check_type(o.mask.bias(), "a bias");
  check_type(o.offset_bias, "an offset bias");
  check_type(o.sink, "a sink");
  const Shape offsets{s.heads, std::max<std::int64_t>(s.n_q + s.n_k - 1, 0)};
  check(!o.offset_bias || o.offset_bias.shape() == offsets, "attention", "needs an offset bias {}, not {}",
        offsets, o.offset_bias ? o.offset_bias.shape() : Shape{});
  check(!o.sink || o.sink.shape() == Shape{s.heads}, "attention", "needs a sink [{}], not {}", s.heads,
        o.sink ? o.sink.shape() : Shape{});
  if (o.telemetry) check_telemetry(*o.telemetry, s.batch, s.n_q, s.n_k);
  s.scale = o.scale.value_or(s.d_k == 0 ? 1 : 1 / std::sqrt(static_cast<double>(s.d_k)));
  return s;
}

}  // namespace

AttentionSizes check_attention(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionOptions& o) {
  const std::int64_t kv = o.kv_heads == 0 ? o.heads : o.kv_heads;
  check_heads(o, kv);
  const Shape& a = q.shape();
  const Shape& b = k.shape();
  const Shape& c = v.shape();
  check(a.rank() == 3 && b.rank() == 3 && c.rank() == 3, "attention",
        "needs [batch, tokens, heads·d] three times, not {}, {}, {}", a, b, c);
  const bool fits = a[0] == b[0] && b[0] == c[0] && b[1] == c[1] && a[2] % o.heads == 0 && b[2] % kv == 0 &&
                    c[2] % kv == 0 && a[2] / o.heads == b[2] / kv;
  check(fits, "attention", "q {}, k {}, v {} do not fit {} heads over {} key/value heads", a, b, c, o.heads,
        kv);
  check(q.dtype() == k.dtype() && k.dtype() == v.dtype(), "attention", "q, k, v are {}, {}, {}",
        name_of(q.dtype()), name_of(k.dtype()), name_of(v.dtype()));
  return checked({a[0], o.heads, kv, a[1], b[1], a[2] / o.heads, c[2] / kv, 1}, q.dtype(), o);
}

AttentionSizes check_attention(const Tensor& qkv, const AttentionOptions& o) {
  const std::int64_t kv = o.kv_heads == 0 ? o.heads : o.kv_heads;
  check_heads(o, kv);
  const Shape& shape = qkv.shape();
  const std::int64_t parts = o.heads + 2 * kv;
  check(shape.rank() == 3 && shape[2] % parts == 0, "attention",
        "needs [batch, tokens, {}·d] for {} heads over {}, not {}", parts, o.heads, kv, shape);
  const std::int64_t d = shape[2] / parts;
  return checked({shape[0], o.heads, kv, shape[1], shape[1], d, d, 1}, qkv.dtype(), o);
}

}  // namespace headlab::detail
