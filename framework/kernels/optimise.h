// One step of an optimiser on a run of parameters, norms of gradients. On the caller's thread: each number is
// treated by itself (or, in sums, in one fixed order), so callers cut the work as they like.
#pragma once

#include <cstdint>

namespace headlab {

/// What gradients are multiplied by before they are used: each product is taken in f64 and rounded once to
/// the gradient's type. Two factors, since one alone may be smaller than any normal number; the first is 1
/// but for f64 gradients of absurd size.
struct GradientScale {
  double before = 1;
  double factor = 1;
  bool changes() const { return before != 1 || factor != 1; }
};

namespace kernels {

/// One step of AdamW with its bias corrections worked out.
struct AdamWFactors {
  double beta1 = 0, beta2 = 0;
  double eps = 0;
  double keep = 1;  ///< 1 - lr·weight_decay
  double rate = 0;  ///< lr / (1 - beta1^t)
  double root = 1;  ///< 1 / sqrt(1 - beta2^t)
  GradientScale scale = {};
};
/// With g scaled: m += (1 - beta1)·(g - m);  v = beta2·v + (1 - beta2)·g²;  w = keep·w - rate·m /
/// (root·sqrt(v) + eps)
void adamw(float* w, const float* g, float* m, float* v, std::int64_t n, const AdamWFactors& factors);
void adamw(double* w, const double* g, double* m, double* v, std::int64_t n, const AdamWFactors& factors);

struct SgdFactors {
  double lr = 0;
  double momentum = 0;
  bool nesterov = false;
  double keep = 1;  ///< 1 - lr·weight_decay
  GradientScale scale = {};
};
/// With g scaled: u = momentum·u + g;  w = keep·w - lr·(nesterov ? g + momentum·u : u). Without momentum u
/// may be nullptr.
void sgd(float* w, const float* g, float* u, std::int64_t n, const SgdFactors& factors);
void sgd(double* w, const double* g, double* u, std::int64_t n, const SgdFactors& factors);

/// Σ (scale·x)² in f64. Cannot overflow for finite f32 numbers with scale 1.
double sum_of_squares(const float* x, std::int64_t n, double scale);
double sum_of_squares(const double* x, std::int64_t n, double scale);
/// max |x|; NaN if one is NaN, 0 for none.
double largest_magnitude(const double* x, std::int64_t n);
/// x = scale·x.
void scale(float* x, std::int64_t n, GradientScale scale);
void scale(double* x, std::int64_t n, GradientScale scale);

}  // namespace kernels
}  // namespace headlab
