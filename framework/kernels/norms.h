// Layer norm and root-mean-square norm along the last axis.
//
//   layer norm: y = (x - mean)·r·gain + bias, r = 1/sqrt(variance + eps), the variance biased (divided by n)
//   rms norm:   y = x·r·gain + bias,          r = 1/sqrt(mean of x² + eps)
//
// Row-major [rows, n]; gain and bias of [n], each may be nullptr. The bits of a row depend on that row alone.
#pragma once

#include <cstdint>

namespace headlab::kernels {

enum class Norm : bool { layer, rms };

struct Rows {
  std::int64_t rows = 0;
  std::int64_t n = 0;
};

/// Writes y and, for backward, each row's mean (of [rows]; 0 for the rms norm) and r (of [rows]).
void norm(Norm kind, const float* x, const float* gain, const float* bias, float eps, float* y, float* mean,
          float* r, Rows shape);
void norm(Norm kind, const double* x, const double* gain, const double* bias, double eps, double* y,
          double* mean, double* r, Rows shape);

/// dx (+)= gradient of x, if dx is given. Where gain_partials (bias_partials) is given, one row for each
/// chunk of chunk_rows(rows) rows is written to it: [chunks, n], whose column sums are the gradient of gain
/// (bias).
template <class T>
struct NormGradients {
  T* dx = nullptr;
  bool accumulate = false;
  T* gain_partials = nullptr;
  T* bias_partials = nullptr;
};
void norm_backward(Norm kind, const float* x, const float* gain, const float* mean, const float* r,
                   const float* dy, NormGradients<float> out, Rows shape);
void norm_backward(Norm kind, const double* x, const double* gain, const double* mean, const double* r,
                   const double* dy, NormGradients<double> out, Rows shape);

}  // namespace headlab::kernels
