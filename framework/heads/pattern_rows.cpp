#include "framework/heads/pattern_rows.h"

#include <algorithm>
#include <cmath>

#include "framework/core/check.h"

namespace headlab {

namespace {
const Array& checked(const Array& pattern) {
  check(pattern && pattern.rank() == 4 && pattern.dtype() == DType::f32, "pattern",
        "needs f32 [B, heads, n_q, n_k], not {} {}", name_of(pattern.dtype()), pattern.shape());
  return pattern;
}
}  // namespace

PatternRows::PatternRows(const Array& pattern, const Mask& mask, const Array& counted)
    : pattern_(checked(pattern)),
      counted_(counted),
      values_(std::as_const(pattern_).data<float>()),
      mask_(mask, pattern.shape()[0], pattern.shape()[1], pattern.shape()[2], pattern.shape()[3], "pattern") {
  if (!counted_) return;
  check(counted_.dtype() == DType::u8 && counted_.shape() == Shape{pattern_.shape()[0], n_q()}, "pattern",
        "flags of queries {} {} do not fit patterns of {}", name_of(counted_.dtype()), counted_.shape(),
        pattern_.shape());
  flags_ = std::as_const(counted_).data<std::uint8_t>();
}

std::int64_t argmax_of(const PatternRow& row) {
  std::int64_t best = -1;
  for (std::int64_t key = row.mask.first; key < row.mask.last; ++key) {
    if (row.allows(key) && (best < 0 || row.weights[key] > row.weights[best])) best = key;
  }
  return best;
}

double entropy_of(const PatternRow& row) {
  double sum = 0;
  for (std::int64_t key = row.mask.first; key < row.mask.last; ++key) {
    const double weight = static_cast<double>(row.weights[key]);
    if (weight > 0 && row.allows(key)) sum -= weight * std::log(weight);
  }
  return std::max(sum, 0.0);  // weights of a sharp row may add up to a little over 1
}

}  // namespace headlab
