// Products of matrices: C[m,n] = beta·C + op(A)[m,k]·op(B)[k,n], row-major with leading dimensions.
//
// op is the matrix itself (`no`: A is stored [m,k], B [k,n]) or its transpose (`yes`: A is stored [k,m], B
// [n,k]). lda, ldb, ldc are the distances of stored rows, at least their lengths. beta is 0 (C is only
// written: it may hold NaN or nothing yet) or 1. With k = 0 the product is zero. C must not overlap A or B.
// NaN and infinity take part as in scalar arithmetic.
//
// Order of sums in f32, fixed for good: k is cut into blocks of gemm_block_k. Within a block one chain,
// acc = fma(a[i,k], b[k,j], acc), starts from 0 and runs with k ascending; the blocks' sums are then added in
// ascending order, c = c + acc, where with beta = 0 the first block's sum is itself the first c. Whatever the
// path, the number of rows, the instruction set or the number of threads: the bits of an output row depend on
// that row of A, on B and on (k, n) alone. Subnormal numbers count as zero.
#pragma once

#include <cstdint>

namespace headlab::kernels {

enum class Transpose : bool { no, yes };

constexpr std::int64_t gemm_block_k = 256;

/// On the caller's thread. Error: a negative size, a leading dimension too small, beta neither 0 nor 1.
void gemm(Transpose transpose_a, Transpose transpose_b, std::int64_t m, std::int64_t n, std::int64_t k,
          const float* a, std::int64_t lda, const float* b, std::int64_t ldb, float beta, float* c,
          std::int64_t ldc);

/// The same bits, on several threads where the product is large enough to pay.
void gemm_parallel(Transpose transpose_a, Transpose transpose_b, std::int64_t m, std::int64_t n,
                   std::int64_t k, const float* a, std::int64_t lda, const float* b, std::int64_t ldb,
                   float beta, float* c, std::int64_t ldc);

/// In f64, to check gradients with: plain loops, k ascending, product and sum rounded one by one.
void gemm(Transpose transpose_a, Transpose transpose_b, std::int64_t m, std::int64_t n, std::int64_t k,
          const double* a, std::int64_t lda, const double* b, std::int64_t ldb, double beta, double* c,
          std::int64_t ldc);
void gemm_parallel(Transpose transpose_a, Transpose transpose_b, std::int64_t m, std::int64_t n,
                   std::int64_t k, const double* a, std::int64_t lda, const double* b, std::int64_t ldb,
                   double beta, double* c, std::int64_t ldc);

}  // namespace headlab::kernels
