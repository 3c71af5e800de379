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
#include <type_traits>

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

/// A rectangle of C.
struct GemmBlock {
  std::int64_t row, rows, column, columns;
};
/// A function object called with a GemmBlock, or nothing. It does not own what it calls.
class GemmFinish {
 public:
  GemmFinish() = default;
  template <class F>
  requires(!std::is_same_v<F, GemmFinish>)
      GemmFinish(const F& f)  // implicit: a lambda is passed where this is asked for
      : object_(&f),
        call_([](const void* object, const GemmBlock& block) { (*static_cast<const F*>(object))(block); }) {}
  explicit operator bool() const { return call_ != nullptr; }
  void operator()(const GemmBlock& block) const { call_(object_, block); }

 private:
  const void* object_ = nullptr;
  void (*call_)(const void*, const GemmBlock&) = nullptr;
};

/// C = op(A)·op(B) with every row added to the same row `bias` [n] (null: none): the bits of beta = 1 on a C
/// whose rows are the bias. `finish` is called once for each block of C, when the block is complete and on
/// the thread that has it in its cache; the blocks depend on the shape alone. It must not throw.
void gemm_bias_parallel(Transpose transpose_a, Transpose transpose_b, std::int64_t m, std::int64_t n,
                        std::int64_t k, const float* a, std::int64_t lda, const float* b, std::int64_t ldb,
                        const float* bias, float* c, std::int64_t ldc, const GemmFinish& finish = {});

/// In f64, to check gradients with: plain loops, k ascending, product and sum rounded one by one.
void gemm(Transpose transpose_a, Transpose transpose_b, std::int64_t m, std::int64_t n, std::int64_t k,
          const double* a, std::int64_t lda, const double* b, std::int64_t ldb, double beta, double* c,
          std::int64_t ldc);
void gemm_parallel(Transpose transpose_a, Transpose transpose_b, std::int64_t m, std::int64_t n,
                   std::int64_t k, const double* a, std::int64_t lda, const double* b, std::int64_t ldb,
                   double beta, double* c, std::int64_t ldc);
void gemm_bias_parallel(Transpose transpose_a, Transpose transpose_b, std::int64_t m, std::int64_t n,
                        std::int64_t k, const double* a, std::int64_t lda, const double* b, std::int64_t ldb,
                        const double* bias, double* c, std::int64_t ldc, const GemmFinish& finish = {});

}  // namespace headlab::kernels
