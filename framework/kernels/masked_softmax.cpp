#include "framework/kernels/masked_softmax.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "framework/kernels/simd.h"
#include "framework/kernels/vector_math.h"

namespace headlab::kernels {

namespace {
// Explicitly blocked keys become −∞ before anything is computed from them.
template <class T>
void block(T* row, const ScoreRow<T>& options) {
  if (!options.allow && !options.valid) return;
  for (std::int64_t key = options.first; key < options.last; ++key) {
    if (!options.allows(key)) row[key] = -std::numeric_limits<T>::infinity();
  }
}

mask16 between(std::int64_t tile, std::int64_t first, std::int64_t last) {
  return first_lanes(last - tile) & ~first_lanes(first - tile);
}
}  // namespace

void masked_softmax(float* row, std::int64_t n_k, const ScoreRow<float>& options) {
  const std::int64_t first = std::clamp<std::int64_t>(options.first, 0, n_k);
  const std::int64_t last = std::clamp<std::int64_t>(options.last, first, n_k);
  // Lanes hold keys by their absolute position, so a row's sums do not depend on what lies outside it.
  const std::int64_t start = first / lanes * lanes;
  const f32x16 scale = broadcast(options.scale);
  const f32x16 blocked = broadcast(minus_infinity);
  block(row, options);
  f32x16 most = blocked;
  for (std::int64_t j = start; j < last; j += lanes) {
    const mask16 here = between(j, first, last);
    const f32x16 raw = load_masked(row + j, here, minus_infinity);
    f32x16 x = raw * scale;
    if (options.bias) x = x + load_masked(options.bias + j, here, 0.0F);
    x = select(raw == blocked, blocked, x);
    store_masked(row + j, x, here);
    most = max(most, x);
  }
  const float maximum = horizontal_max(most);
  if (maximum == minus_infinity) {
    std::fill_n(row, n_k, 0.0F);
    return;
  }
  const f32x16 shift = broadcast(maximum);
  f32x16 sum = zero();
  for (std::int64_t j = start; j < last; j += lanes) {
    const mask16 here = between(j, first, last);
    const f32x16 x = load_masked(row + j, here, minus_infinity);
    const f32x16 e = select(x == blocked, zero(), exp(x - shift));
    store_masked(row + j, e, here);
    sum = sum + e;
  }
  const f32x16 total = broadcast(horizontal_sum(sum));
  for (std::int64_t j = start; j < last; j += lanes) {
    const mask16 here = between(j, first, last);
    const f32x16 e = load_masked(row + j, here, 0.0F);
    store_masked(row + j, select(e == zero(), zero(), e / total), here);
  }
  std::fill_n(row, first, 0.0F);
  std::fill_n(row + last, n_k - last, 0.0F);
}

void masked_softmax(double* row, std::int64_t n_k, const ScoreRow<double>& options) {
  const std::int64_t first = std::clamp<std::int64_t>(options.first, 0, n_k);
  const std::int64_t last = std::clamp<std::int64_t>(options.last, first, n_k);
  constexpr double blocked = -std::numeric_limits<double>::infinity();
  block(row, options);
  double maximum = blocked;
  bool nan = false;
  for (std::int64_t j = first; j < last; ++j) {
    if (row[j] == blocked) continue;
    row[j] = row[j] * options.scale + (options.bias ? options.bias[j] : 0);
    nan = nan || std::isnan(row[j]);
    maximum = std::max(maximum, row[j]);
  }
  if (nan) maximum = std::numeric_limits<double>::quiet_NaN();
  if (maximum == blocked) {
    std::fill_n(row, n_k, 0.0);
    return;
  }
  double sum = 0;
  for (std::int64_t j = first; j < last; ++j) {
    row[j] = row[j] == blocked ? 0 : std::exp(row[j] - maximum);
    sum += row[j];
  }
  for (std::int64_t j = first; j < last; ++j) row[j] = row[j] == 0 ? 0 : row[j] / sum;
  std::fill_n(row, first, 0.0);
  std::fill_n(row + last, n_k - last, 0.0);
}

// L = L(p), p = softmax(s): ∂p_j/∂s_k = p_j (δ_jk − p_k), hence ds_k = p_k (dp_k − Σ_j p_j dp_j).
void masked_softmax_backward(const float* weights, float* gradient, std::int64_t n_k) {
  f32x16 sum = zero();
  for (std::int64_t j = 0; j < n_k; j += lanes) {
    const mask16 here = first_lanes(n_k - j);
    const f32x16 p = load_masked(weights + j, here, 0.0F);
    const f32x16 dp = load_masked(gradient + j, here, 0.0F);
    sum = select(p == zero(), sum, fma(p, dp, sum));
  }
  const f32x16 mean = broadcast(horizontal_sum(sum));
  for (std::int64_t j = 0; j < n_k; j += lanes) {
    const mask16 here = first_lanes(n_k - j);
    const f32x16 p = load_masked(weights + j, here, 0.0F);
    const f32x16 dp = load_masked(gradient + j, here, 0.0F);
    store_masked(gradient + j, select(p == zero(), zero(), p * (dp - mean)), here);
  }
}

void masked_softmax_backward(const double* weights, double* gradient, std::int64_t n_k) {
  double mean = 0;
  for (std::int64_t j = 0; j < n_k; ++j) {
    if (weights[j] != 0) mean += weights[j] * gradient[j];
  }
  for (std::int64_t j = 0; j < n_k; ++j)
    gradient[j] = weights[j] == 0 ? 0 : weights[j] * (gradient[j] - mean);
}

}  // namespace headlab::kernels
