#include "framework/heads/specialisation.h"

#include <algorithm>
#include <cmath>

#include "framework/core/check.h"
#include "framework/core/parallel.h"

namespace headlab {

namespace {

// Per key: ½ p ln p + ½ q ln q − m ln m with m = (p+q)/2, whose sum is JS; none of them is 0 after smoothing.
double root_js(const PatternRow& row, const float* other) {
  const double floor = 0.001 / static_cast<double>(row.allowed);
  double js = 0;
  for (std::int64_t key = row.mask.first; key < row.mask.last; ++key) {
    if (!row.allows(key)) continue;
    const double p = 0.999 * static_cast<double>(row.weights[key]) + floor;
    const double q = 0.999 * static_cast<double>(other[key]) + floor;
    const double m = (p + q) / 2;
    js += (p * std::log(p) + q * std::log(q)) / 2 - m * std::log(m);
  }
  return std::sqrt(std::max(js, 0.0));
}

}  // namespace

void PatternDistances::add(const PatternRows& rows) {
  if (heads_ == 0) {
    heads_ = rows.heads();
    sums_.resize(static_cast<std::size_t>(heads_ * heads_));
    queries_.resize(sums_.size());
  }
  check(rows.heads() == heads_, "PatternDistances", "{} heads do not fit earlier patterns of {} heads",
        rows.heads(), heads_);
  const double weights = static_cast<double>(rows.n_q() * rows.n_k());
  parallel_for(heads_ * heads_, 1, {.flops = 400 * weights, .bytes = 8 * weights},
               [&](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t pair = begin; pair < end; ++pair) {
                   const std::int64_t a = pair / heads_;
                   const std::int64_t b = pair % heads_;
                   if (a >= b) continue;
                   rows.for_each(a, [&](const PatternRow& row) {
                     sums_[static_cast<std::size_t>(pair)] +=
                         root_js(row, rows.weights(row.example, b, row.query));
                     ++queries_[static_cast<std::size_t>(pair)];
                   });
                 }
               });
}

double PatternDistances::between(std::int64_t a, std::int64_t b) const {
  check(a >= 0 && a < heads_ && b >= 0 && b < heads_, "PatternDistances", "heads {} and {} of {}", a, b,
        heads_);
  const auto pair = static_cast<std::size_t>(std::min(a, b) * heads_ + std::max(a, b));
  return queries_[pair] > 0 ? sums_[pair] / static_cast<double>(queries_[pair]) : 0;
}

double PatternDistances::diversity() const {
  if (heads_ < 2) return 0;
  double sum = 0;
  for (std::int64_t a = 0; a < heads_; ++a) {
    for (std::int64_t b = a + 1; b < heads_; ++b) sum += between(a, b);
  }
  const std::int64_t pairs = heads_ * (heads_ - 1) / 2;
  return sum / static_cast<double>(pairs);
}

}  // namespace headlab
