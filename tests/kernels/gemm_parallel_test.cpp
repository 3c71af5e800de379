#include <array>

#include <gtest/gtest.h>

#include "tests/kernels/gemm_product.h"

namespace headlab::kernels {
namespace {

TEST(GemmParallel, GivesTheSameBitsOnAnyNumberOfThreads) {
  for (const auto& size : {std::array<std::int64_t, 3>{509, 251, 293},
                           {1, 4099, 769},
                           {3001, 3, 211},
                           {67, 61, 1031},  // blocks of k at the same time
                           {61, 67, 701}}) {
    const std::int64_t m = size[0], n = size[1], k = size[2];
    for (const Transpose ta : both) {
      for (const Transpose tb : both) {
        const Product<float> p(ta, tb, m, n, k);
        const auto serial = p.run(1);
        for (const int threads : {1, 2, 3, 4, 8}) {
          set_threads(threads);
          reset_parallel_counters();
          EXPECT_TRUE(same_bits(p.run_parallel(1), serial)) << p.text() << " on " << threads;
          if (m == 509) {
            EXPECT_EQ(parallel_counters().parallel_loops > 0, threads > 1);
          }
        }
        set_threads(0);
      }
    }
  }
  const Product<double> p(Transpose::no, Transpose::yes, 211, 199, 197);
  EXPECT_EQ(p.run_parallel(0), p.run(0));
}

TEST(GemmParallel, StartsFromABiasAndHandsOutEveryBlockOnce) {
  for (const auto& size : {std::array<std::int64_t, 3>{509, 251, 293},
                           {7, 4099, 769},
                           {3001, 3, 211},
                           {197, 2083, 1021},  // some columns of B at a time
                           {2, 3, 5},
                           {5, 7, 0}}) {
    const std::int64_t m = size[0], n = size[1], k = size[2];
    for (const Transpose ta : both) {
      for (const Transpose tb : both) {
        Product<float> p(ta, tb, m, n, k, 1);
        const auto bias = normals<float>(n, 4);
        for (std::int64_t i = 0; i < m; ++i) std::copy_n(bias.begin(), n, p.c.begin() + i * p.ldc);
        const auto expected = p.run(1);
        for (const int threads : {1, 3}) {
          set_threads(threads);
          auto got = p.c;
          for (std::int64_t i = 0; i < m; ++i) std::fill_n(got.begin() + i * p.ldc, n, nan);
          std::vector<int> seen(static_cast<std::size_t>(m * n));
          const auto finish = [&](const GemmBlock& block) {
            for (std::int64_t i = block.row; i < block.row + block.rows; ++i) {
              for (std::int64_t j = block.column; j < block.column + block.columns; ++j) {
                ++seen[i * n + j];
                got[i * p.ldc + j] *= 2;
              }
            }
          };
          gemm_bias_parallel(ta, tb, m, n, k, p.a.data(), p.lda, p.b.data(), p.ldb, bias.data(), got.data(),
                             p.ldc, finish);
          EXPECT_EQ(seen, std::vector<int>(seen.size(), 1)) << p.text();
          for (std::int64_t i = 0; i < m; ++i) {
            for (std::int64_t j = 0; j < n; ++j) got[i * p.ldc + j] /= 2;
          }
          EXPECT_TRUE(same_bits(got, expected)) << p.text() << " on " << threads;
        }
        set_threads(0);
      }
    }
  }
}

TEST(GemmParallel, KeepsTheOrderWhereManyStepsOfKArePackedInTurns) {
  const Product<float> p(Transpose::no, Transpose::no, 61, 1031, 4111);
  EXPECT_TRUE(same_bits(p.run_parallel(1), in_documented_order(p, 1)));
}

TEST(GemmParallel, StaysOnOneThreadWhereTheProductIsSmall) {
  const Product<float> p(Transpose::no, Transpose::yes, 67, 61, 59);
  set_threads(4);
  reset_parallel_counters();
  p.run_parallel(0);
  EXPECT_EQ(parallel_counters().parallel_loops, 0);
  set_threads(0);
}

}  // namespace
}  // namespace headlab::kernels
