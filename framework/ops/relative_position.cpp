#include "framework/ops/relative_position.h"

#include <algorithm>
#include <cmath>

#include "framework/core/check.h"
#include "framework/ops/embedding.h"
#include "framework/ops/shaping.h"

namespace headlab {

namespace {

std::int64_t count_offsets(std::int64_t n_q, std::int64_t n_k) {
  return std::max<std::int64_t>(n_q + n_k - 1, 0);
}

}  // namespace

std::vector<double> alibi_slopes(std::int64_t heads) {
  check(heads >= 1, "alibi_slopes", "heads {} must be at least 1", heads);
  std::int64_t power = 1;
  while (power * 2 <= heads) power *= 2;
  const auto slope = [](std::int64_t i, std::int64_t of) {
    return std::exp2(-8 * static_cast<double>(i) / static_cast<double>(of));
  };
  std::vector<double> slopes;
  for (std::int64_t i = 1; i <= power; ++i) slopes.push_back(slope(i, power));
  for (std::int64_t i = 1; std::ssize(slopes) < heads; i += 2) slopes.push_back(slope(i, 2 * power));
  return slopes;
}

Tensor alibi_bias(std::int64_t heads, std::int64_t n_q, std::int64_t n_k, DType dtype) {
  const std::vector<double> slopes = alibi_slopes(heads);
  const std::int64_t offsets = count_offsets(n_q, n_k);
  Array bias({heads, offsets}, DType::f64);
  double* to = bias.data<double>();
  for (const double slope : slopes) {
    for (std::int64_t i = 0; i < offsets; ++i) *to++ = -slope * std::abs(static_cast<double>(i - (n_k - 1)));
  }
  return Tensor(bias.to(dtype));
}

std::int64_t relative_bucket(std::int64_t offset, const RelativeBuckets& o) {
  check(o.buckets >= 2 && (!o.bidirectional || (o.buckets >= 4 && o.buckets % 2 == 0)), "relative_bucket",
        "{} buckets; needs at least 2, or an even number from 4 on when bidirectional", o.buckets);
  const std::int64_t side = o.bidirectional ? o.buckets / 2 : o.buckets;
  const std::int64_t exact = side / 2;
  check(o.max_distance > exact, "relative_bucket", "max_distance {} is not over the {} exact buckets",
        o.max_distance, exact);
  const std::int64_t first = o.bidirectional && offset > 0 ? side : 0;
  const std::int64_t distance = o.bidirectional ? std::abs(offset) : std::max<std::int64_t>(-offset, 0);
  if (distance < exact) return first + distance;
  const double share = std::log(static_cast<double>(distance) / static_cast<double>(exact)) /
                       std::log(static_cast<double>(o.max_distance) / static_cast<double>(exact));
  // A distance where a bucket begins belongs to it, however a machine's log rounds.
  constexpr double rounding = 1e-9;
  const auto far = static_cast<std::int64_t>(share * static_cast<double>(side - exact) + rounding);
  return first + std::min(exact + far, side - 1);
}

Tensor relative_bias(const Tensor& table, std::int64_t n_q, std::int64_t n_k, const RelativeBuckets& o) {
  check(table.rank() == 2 && table.dim(0) == o.buckets, "relative_bias", "needs a table [{}, heads], not {}",
        o.buckets, table.shape());
  const std::int64_t offsets = count_offsets(n_q, n_k);
  Array ids({offsets}, DType::i64);
  for (std::int64_t i = 0; i < offsets; ++i) ids.data<std::int64_t>()[i] = relative_bucket(i - (n_k - 1), o);
  const Tensor by_offset = embedding(ids, table);  // [offsets, heads]
  return transpose(by_offset, {1, 0});
}

}  // namespace headlab
