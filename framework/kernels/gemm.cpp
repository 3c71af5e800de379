#include "framework/kernels/gemm.h"

#include <algorithm>
#include <cmath>

#include "framework/core/check.h"
#include "framework/core/parallel.h"
#include "framework/core/profile.h"
#include "framework/kernels/gemm_multiply.h"
#include "framework/kernels/scratch.h"

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

using detail::Packed;
using detail::Product;
using detail::Region;
using detail::RowTiles;

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

/// How a product is cut for several threads, from its shape alone: C in blocks of whole columns, which all
/// read A, or of whole rows, which all read B. What all read is the smaller one and packed beforehand; of the
/// other, each number belongs to one block, which packs it where and when it needs it.
struct Plan {
  bool shares_a;
  std::int64_t blocks, size;  ///< of columns, or of tiles of rows
  std::int64_t depth;         ///< steps of k packed beforehand at a time
};
Plan plan_for(const Product& p, const RowTiles& tiles) {
  Plan plan{};
  plan.shares_a = p.m <= p.n;
  const std::int64_t unit = plan.shares_a ? detail::panel_width : 1;
  const std::int64_t length = plan.shares_a ? p.n : tiles.count();
  // About 1/32 of the work each, but not so small that a thread's start costs more, nor so few rows that a
  // panel of B is not worth fetching.
  const double flops = 2.0 * static_cast<double>(p.m) * static_cast<double>(p.n) * static_cast<double>(p.k);
  const double parts = std::clamp(flops / 2e6, 1.0, 32.0);
  const auto wanted = static_cast<std::int64_t>(std::ceil(static_cast<double>(length) / parts));
  const std::int64_t least = plan.shares_a ? unit : 4;
  plan.size = (std::max(wanted, least) + unit - 1) / unit * unit;
  plan.blocks = (length + plan.size - 1) / plan.size;
  // What is packed beforehand stays in a second-level cache, or nearly.
  constexpr std::int64_t most_packed = std::int64_t{1} << 19;
  const std::int64_t depth = most_packed / std::min(p.m, p.n) / gemm_block_k * gemm_block_k;
  plan.depth = std::min(std::max(depth, gemm_block_k), p.k);
  return plan;
}

/// Packs op(A) into `a` and op(B) into `b` where they are wanted.
void pack(const Product& p, const RowTiles& tiles, const Region& all, float* a, float* b) {
  constexpr std::int64_t tiles_at_once = 4;
  const std::int64_t row_pieces = a ? (tiles.count() + tiles_at_once - 1) / tiles_at_once : 0;
  const std::int64_t column_pieces = b ? (p.n + detail::panel_width - 1) / detail::panel_width : 0;
  const std::int64_t floats = ((a ? p.m : 0) + (b ? p.n : 0)) * (all.last_k - all.first_k);
  const Cost cost{.bytes = 8 * static_cast<double>(floats) / static_cast<double>(row_pieces + column_pieces)};
  parallel_for(row_pieces + column_pieces, 1, cost, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t piece = begin; piece < end; ++piece) {
      Region part = all;
      if (piece < row_pieces) {
        part.first_tile = piece * tiles_at_once;
        part.last_tile = std::min(part.first_tile + tiles_at_once, tiles.count());
        detail::pack_rows(p, tiles, part, a);
      } else {
        part.first_column = (piece - row_pieces) * detail::panel_width;
        part.last_column = std::min(part.first_column + detail::panel_width, p.n);
        detail::pack_columns(p, part, b);
      }
    }
  });
}

void multiply_parallel(const Product& p, const GemmFinish& finish) {
  // The cost model's 16 operations per nanosecond are those of a plain loop; these are several times faster.
  constexpr double faster_than_plain_loops = 6;
  const RowTiles tiles(p.m);
  const Plan plan = plan_for(p, tiles);
  const bool packs = plan.blocks > 1 && detail::worth_packing(p, plan.shares_a);
  Scratch scratch(!packs          ? 0
                  : plan.shares_a ? detail::packed_a_size(p, plan.depth)
                                  : detail::packed_b_size(p, plan.depth));
  float* const packed_a = packs && plan.shares_a ? scratch.data() : nullptr;
  float* const packed_b = packs && !plan.shares_a ? scratch.data() : nullptr;
  const std::int64_t depth = packs ? plan.depth : p.k;
  for (std::int64_t first_k = 0; first_k < p.k; first_k += depth) {
    const Region all{0, tiles.count(), 0, p.n, first_k, std::min(p.k, first_k + depth)};
    if (packs) pack(p, tiles, all, packed_a, packed_b);
    const double products = static_cast<double>(p.m) * static_cast<double>(p.n) *
                            static_cast<double>(all.last_k - first_k) / static_cast<double>(plan.blocks);
    const Cost cost{.flops = 2 * products / faster_than_plain_loops};
    parallel_for(plan.blocks, 1, cost, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t block = begin; block < end; ++block) {
        Region part = all;
        if (plan.shares_a) {
          part.first_column = block * plan.size;
          part.last_column = std::min(part.first_column + plan.size, p.n);
        } else {
          part.first_tile = block * plan.size;
          part.last_tile = std::min(part.first_tile + plan.size, tiles.count());
        }
        detail::multiply(p, tiles, part, {packed_a, packed_b});
        if (!finish || part.last_k < p.k) continue;
        const std::int64_t row = tiles.first_row(part.first_tile);
        finish({row, tiles.first_row(part.last_tile) - row, part.first_column,
                part.last_column - part.first_column});
      }
    });
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
  const Product p{transpose_a == Transpose::yes,
                  transpose_b == Transpose::yes,
                  m,
                  n,
                  k,
                  a,
                  lda,
                  b,
                  ldb,
                  c,
                  ldc,
                  beta == 0 ? nullptr : c,
                  ldc};
  const RowTiles tiles(m);
  detail::multiply(p, tiles, {0, tiles.count(), 0, n, 0, k}, {});
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
  multiply_parallel({transpose_a == Transpose::yes, transpose_b == Transpose::yes, m, n, k, a, lda, b, ldb, c,
                     ldc, beta == 0 ? nullptr : c, ldc},
                    {});
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
  multiply_parallel({transpose_a == Transpose::yes, transpose_b == Transpose::yes, m, n, k, a, lda, b, ldb, c,
                     ldc, bias, 0},
                    finish);
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
