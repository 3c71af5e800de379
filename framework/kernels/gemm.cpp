#include "framework/kernels/gemm.h"

#include <algorithm>

#include "framework/core/check.h"
#include "framework/core/parallel.h"
#include "framework/core/profile.h"
#include "framework/kernels/gemm_multiply.h"

namespace headlab::kernels {
namespace {

template <class Number>
void validate(Transpose transpose_a, Transpose transpose_b, std::int64_t m, std::int64_t n, std::int64_t k,
              std::int64_t lda, std::int64_t ldb, Number beta, std::int64_t ldc) {
  check(m >= 0 && n >= 0 && k >= 0, "gemm", "sizes m {}, n {}, k {} must not be negative", m, n, k);
  const std::int64_t length_a = transpose_a == Transpose::yes ? m : k;
  const std::int64_t length_b = transpose_b == Transpose::yes ? k : n;
  check(lda >= length_a, "gemm", "lda {} is less than the row length {}", lda, length_a);
  check(ldb >= length_b, "gemm", "ldb {} is less than the row length {}", ldb, length_b);
  check(ldc >= n, "gemm", "ldc {} is less than the row length {}", ldc, n);
  check(beta == Number{0} || beta == Number{1}, "gemm", "beta {} is neither 0 nor 1", beta);
}

// For a profile. A product of gemm() is a tile of somebody's loop and mostly finds its operands in a cache:
// only its operations count.
void count_flops(std::int64_t m, std::int64_t n, std::int64_t k) {
  profile::count(2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k), 0);
}
template <class Number>
void count_product(std::int64_t m, std::int64_t n, std::int64_t k, Number beta) {
  count_flops(m, n, k);
  profile::moved<Number>(1, m * k + k * n + (beta == Number{0} ? 1 : 2) * m * n);
}

using detail::Product;
using detail::RowTiles;

Product product_of(Transpose transpose_a, Transpose transpose_b, std::int64_t m, std::int64_t n,
                   std::int64_t k, const float* a, std::int64_t lda, const float* b, std::int64_t ldb,
                   float beta, float* c, std::int64_t ldc) {
  return {.transposed_a = transpose_a == Transpose::yes,
          .transposed_b = transpose_b == Transpose::yes,
          .m = m,
          .n = n,
          .k = k,
          .a = a,
          .lda = lda,
          .b = b,
          .ldb = ldb,
          .c = c,
          .ldc = ldc,
          .start = beta == 0 ? nullptr : c,
          .start_step = ldc};
}

template <class Number>
void clear(std::int64_t m, std::int64_t n, Number* c, std::int64_t ldc) {
  for (std::int64_t i = 0; i < m; ++i) std::fill_n(c + i * ldc, n, Number{0});
}

/// Every row of C becomes `row`, or zeros without one.
template <class Number>
void start_with(const Number* row, std::int64_t m, std::int64_t n, Number* c, std::int64_t ldc) {
  if (row == nullptr) return clear(m, n, c, ldc);
  for (std::int64_t i = 0; i < m; ++i) std::copy_n(row, n, c + i * ldc);
}

/// Row i of C at a time; B transposed is read by strides: f64 serves checks, not training.
void multiply_plainly(bool transposed_a, bool transposed_b, std::int64_t m, std::int64_t n, std::int64_t k,
                      const double* a, std::int64_t lda, const double* b, std::int64_t ldb, bool keep,
                      double* c, std::int64_t ldc) {
  if (!keep) clear(m, n, c, ldc);
  for (std::int64_t i = 0; i < m; ++i) {
    double* const row = c + i * ldc;
    for (std::int64_t l = 0; l < k; ++l) {
      const double x = transposed_a ? a[l * lda + i] : a[i * lda + l];
      if (transposed_b) {
        for (std::int64_t j = 0; j < n; ++j) row[j] += x * b[j * ldb + l];
      } else {
        for (std::int64_t j = 0; j < n; ++j) row[j] += x * b[l * ldb + j];
      }
    }
  }
}

/// The f64 product in blocks of rows.
void multiply_plainly_parallel(bool transposed_a, bool transposed_b, std::int64_t m, std::int64_t n,
                               std::int64_t k, const double* a, std::int64_t lda, const double* b,
                               std::int64_t ldb, bool keep, double* c, std::int64_t ldc) {
  const Cost cost{.flops = 4 * static_cast<double>(n) * static_cast<double>(k)};
  parallel_for(m, 16, cost, [&](std::int64_t begin, std::int64_t end) {
    multiply_plainly(transposed_a, transposed_b, end - begin, n, k, a + (transposed_a ? begin : begin * lda),
                     lda, b, ldb, keep, c + begin * ldc, ldc);
  });
}

}  // namespace

void gemm(Transpose transpose_a, Transpose transpose_b, std::int64_t m, std::int64_t n, std::int64_t k,
          const float* a, std::int64_t lda, const float* b, std::int64_t ldb, float beta, float* c,
          std::int64_t ldc) {
  validate(transpose_a, transpose_b, m, n, k, lda, ldb, beta, ldc);
  count_flops(m, n, k);
  if (m == 0 || n == 0) return;
  if (k == 0) {
    if (beta == 0) clear(m, n, c, ldc);
    return;
  }
  const FlushToZero flush;
  const Product p = product_of(transpose_a, transpose_b, m, n, k, a, lda, b, ldb, beta, c, ldc);
  const RowTiles tiles(m);
  detail::multiply(p, tiles, {0, tiles.count(), 0, n, 0, k, false}, {});
}

void gemm_parallel(Transpose transpose_a, Transpose transpose_b, std::int64_t m, std::int64_t n,
                   std::int64_t k, const float* a, std::int64_t lda, const float* b, std::int64_t ldb,
                   float beta, float* c, std::int64_t ldc) {
  validate(transpose_a, transpose_b, m, n, k, lda, ldb, beta, ldc);
  count_product(m, n, k, beta);
  if (m == 0 || n == 0) return;
  if (k == 0) {
    if (beta == 0) clear(m, n, c, ldc);
    return;
  }
  detail::multiply_parallel(product_of(transpose_a, transpose_b, m, n, k, a, lda, b, ldb, beta, c, ldc), {});
}

void gemm_bias_parallel(Transpose transpose_a, Transpose transpose_b, std::int64_t m, std::int64_t n,
                        std::int64_t k, const float* a, std::int64_t lda, const float* b, std::int64_t ldb,
                        const float* bias, float* c, std::int64_t ldc, const GemmFinish& finish) {
  validate(transpose_a, transpose_b, m, n, k, lda, ldb, 0.0F, ldc);
  count_product(m, n, k, 0.0F);
  if (m == 0 || n == 0) return;
  if (k == 0) {
    start_with(bias, m, n, c, ldc);
    if (finish) finish({0, m, 0, n});
    return;
  }
  Product p = product_of(transpose_a, transpose_b, m, n, k, a, lda, b, ldb, 0, c, ldc);
  p.start = bias;
  p.start_step = 0;
  detail::multiply_parallel(p, finish);
}

void gemm(Transpose transpose_a, Transpose transpose_b, std::int64_t m, std::int64_t n, std::int64_t k,
          const double* a, std::int64_t lda, const double* b, std::int64_t ldb, double beta, double* c,
          std::int64_t ldc) {
  validate(transpose_a, transpose_b, m, n, k, lda, ldb, beta, ldc);
  count_flops(m, n, k);
  const FlushToZero flush;
  multiply_plainly(transpose_a == Transpose::yes, transpose_b == Transpose::yes, m, n, k, a, lda, b, ldb,
                   beta != 0, c, ldc);
}

void gemm_parallel(Transpose transpose_a, Transpose transpose_b, std::int64_t m, std::int64_t n,
                   std::int64_t k, const double* a, std::int64_t lda, const double* b, std::int64_t ldb,
                   double beta, double* c, std::int64_t ldc) {
  validate(transpose_a, transpose_b, m, n, k, lda, ldb, beta, ldc);
  count_product(m, n, k, beta);
  multiply_plainly_parallel(transpose_a == Transpose::yes, transpose_b == Transpose::yes, m, n, k, a, lda, b,
                            ldb, beta != 0, c, ldc);
}

void gemm_bias_parallel(Transpose transpose_a, Transpose transpose_b, std::int64_t m, std::int64_t n,
                        std::int64_t k, const double* a, std::int64_t lda, const double* b, std::int64_t ldb,
                        const double* bias, double* c, std::int64_t ldc, const GemmFinish& finish) {
  validate(transpose_a, transpose_b, m, n, k, lda, ldb, 0.0, ldc);
  count_product(m, n, k, 0.0);
  if (m == 0 || n == 0) return;
  start_with(bias, m, n, c, ldc);
  multiply_plainly_parallel(transpose_a == Transpose::yes, transpose_b == Transpose::yes, m, n, k, a, lda, b,
                            ldb, true, c, ldc);
  if (finish) finish({0, m, 0, n});
}

}  // namespace headlab::kernels
