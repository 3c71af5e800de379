#include "framework/kernels/gemm.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <Eigen/Dense>
#include <gtest/gtest.h>

#include "framework/core/check.h"
#include "framework/core/parallel.h"
#include "framework/core/random.h"

namespace headlab::kernels {
namespace {

constexpr Transpose both[] = {Transpose::no, Transpose::yes};
constexpr float nan = std::numeric_limits<float>::quiet_NaN();

template <class Number>
std::vector<Number> normals(std::int64_t count, std::uint64_t index) {
  Random random(3, Stream::evaluation, index);
  std::vector<Number> out(static_cast<std::size_t>(count));
  for (Number& x : out) x = static_cast<Number>(random.normal());
  return out;
}

/// One product with all its operands; leading dimensions are longer than rows by `slack`.
template <class Number>
struct Product {
  Transpose ta, tb;
  std::int64_t m, n, k, lda, ldb, ldc;
  std::vector<Number> a, b, c;
  Product(Transpose ta_, Transpose tb_, std::int64_t m_, std::int64_t n_, std::int64_t k_,
          std::int64_t slack = 0)
      : ta(ta_), tb(tb_), m(m_), n(n_), k(k_) {
    lda = (ta == Transpose::yes ? m : k) + slack;
    ldb = (tb == Transpose::yes ? k : n) + 2 * slack;
    ldc = n + 3 * slack;
    a = normals<Number>((ta == Transpose::yes ? k : m) * lda, 1);
    b = normals<Number>((tb == Transpose::yes ? n : k) * ldb, 2);
    c = normals<Number>(m * ldc, 3);
  }
  Number at_a(std::int64_t i, std::int64_t l) const {
    return a[ta == Transpose::yes ? l * lda + i : i * lda + l];
  }
  Number at_b(std::int64_t l, std::int64_t j) const {
    return b[tb == Transpose::yes ? j * ldb + l : l * ldb + j];
  }
  std::vector<Number> run(Number beta) const {
    auto out = c;
    gemm(ta, tb, m, n, k, a.data(), lda, b.data(), ldb, beta, out.data(), ldc);
    return out;
  }
  std::vector<Number> run_parallel(Number beta) const {
    auto out = c;
    gemm_parallel(ta, tb, m, n, k, a.data(), lda, b.data(), ldb, beta, out.data(), ldc);
    return out;
  }
  std::string text() const {
    return std::string(ta == Transpose::yes ? "T" : "N") + (tb == Transpose::yes ? "T " : "N ") +
           std::to_string(m) + "x" + std::to_string(n) + "x" + std::to_string(k);
  }
};

/// The documented order of sums, one number at a time.
std::vector<float> in_documented_order(const Product<float>& p, float beta) {
  const FlushToZero flush;
  auto out = p.c;
  for (std::int64_t i = 0; i < p.m; ++i) {
    for (std::int64_t j = 0; j < p.n; ++j) {
      float c = beta == 0 ? 0 : out[i * p.ldc + j];
      for (std::int64_t first = 0; first < p.k; first += gemm_block_k) {
        float sum = 0;
        for (std::int64_t l = first; l < std::min(p.k, first + gemm_block_k); ++l) {
          sum = std::fma(p.at_a(i, l), p.at_b(l, j), sum);
        }
        c = first == 0 && beta == 0 ? sum : c + sum;
      }
      out[i * p.ldc + j] = c;
    }
  }
  return out;
}

bool same_bits(const std::vector<float>& x, const std::vector<float>& y) {
  return std::equal(x.begin(), x.end(), y.begin(), y.end(), [](float s, float t) {
    return std::bit_cast<std::uint32_t>(s) == std::bit_cast<std::uint32_t>(t);
  });
}

template <class Number>
void agrees_with_eigen(double tolerance) {
  using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  const std::int64_t sizes[][3] = {{1, 1, 1},  {2, 3, 5},    {17, 19, 23},  {1, 67, 31}, {61, 1, 37},
                                   {7, 13, 1}, {97, 101, 7}, {41, 43, 521}, {5, 7, 1031}};
  for (const auto& size : sizes) {
    for (const Transpose ta : both) {
      for (const Transpose tb : both) {
        for (const std::int64_t slack : {0, 3}) {
          const Product<Number> p(ta, tb, size[0], size[1], size[2], slack);
          Matrix a(p.m, p.k), b(p.k, p.n), c(p.m, p.n);
          for (std::int64_t i = 0; i < p.m; ++i) {
            for (std::int64_t l = 0; l < p.k; ++l) a(i, l) = static_cast<double>(p.at_a(i, l));
            for (std::int64_t j = 0; j < p.n; ++j) c(i, j) = static_cast<double>(p.c[i * p.ldc + j]);
          }
          for (std::int64_t l = 0; l < p.k; ++l) {
            for (std::int64_t j = 0; j < p.n; ++j) b(l, j) = static_cast<double>(p.at_b(l, j));
          }
          const Matrix exact = a * b, scale = a.cwiseAbs() * b.cwiseAbs();
          for (const int beta : {0, 1}) {
            const auto got = p.run(static_cast<Number>(beta));
            for (std::int64_t i = 0; i < p.m; ++i) {
              for (std::int64_t j = 0; j < p.ldc; ++j) {
                const auto value = static_cast<double>(got[i * p.ldc + j]);
                if (j < p.n) {
                  ASSERT_NEAR(value, exact(i, j) + beta * c(i, j), tolerance * (scale(i, j) + 1)) << p.text();
                } else {
                  ASSERT_EQ(got[i * p.ldc + j], p.c[i * p.ldc + j]) << "beyond the row, " << p.text();
                }
              }
            }
          }
        }
      }
    }
  }
}

TEST(Gemm, AgreesWithEigenInF32) { agrees_with_eigen<float>(2e-6); }
TEST(Gemm, AgreesWithEigenInF64) { agrees_with_eigen<double>(1e-14); }

TEST(Gemm, SumsInTheDocumentedOrderOnEveryPath) {
  Random random(5, Stream::evaluation);
  for (int trial = 0; trial < 120; ++trial) {
    const bool large = trial % 8 == 0;
    const std::int64_t m = 1 + random.below(large ? 300 : 50), n = 1 + random.below(large ? 300 : 90);
    const std::int64_t k = 1 + random.below(trial % 3 == 0 ? 700 : 70);
    for (const Transpose ta : both) {
      for (const Transpose tb : both) {
        const Product<float> p(ta, tb, m, n, k, random.below(4));
        const float beta = trial % 2 == 0 ? 0.0F : 1.0F;
        ASSERT_TRUE(same_bits(p.run(beta), in_documented_order(p, beta))) << p.text();
      }
    }
  }
}

TEST(Gemm, SumsInTheDocumentedOrderPastTheBlocksOfRows) {
  for (const Transpose ta : both) {
    const Product<float> p(ta, Transpose::yes, 1019, 37, 263, 1);
    EXPECT_TRUE(same_bits(p.run(1), in_documented_order(p, 1))) << p.text();
    const Product<float> wide(ta, Transpose::no, 523, 307, 29);
    EXPECT_TRUE(same_bits(wide.run(0), in_documented_order(wide, 0))) << wide.text();
  }
}

TEST(Gemm, ARowDoesNotDependOnItsNeighbours) {
  for (const Transpose tb : both) {
    const Product<float> whole(Transpose::no, tb, 211, 173, 307);
    const auto expected = whole.run(0);
    for (const std::int64_t rows : {1, 2, 5, 13, 29, 83}) {
      for (std::int64_t first = 0; first + rows <= whole.m; first += 41) {
        std::vector<float> some(static_cast<std::size_t>(rows * whole.n));
        gemm(whole.ta, tb, rows, whole.n, whole.k, whole.a.data() + first * whole.lda, whole.lda,
             whole.b.data(), whole.ldb, 0.0F, some.data(), whole.n);
        ASSERT_TRUE(same_bits(
            some, {expected.begin() + first * whole.n, expected.begin() + (first + rows) * whole.n}));
      }
    }
  }
}

TEST(Gemm, GivesTheSameBitsOnAnyNumberOfThreads) {
  for (const auto& [m, n, k] : {std::array<std::int64_t, 3>{509, 251, 293},
                                {1, 4099, 769},
                                {3001, 3, 211},
                                {67, 61, 1031},  // blocks of k at the same time
                                {61, 67, 701}}) {
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

TEST(Gemm, StartsFromABiasAndHandsOutEveryBlockOnce) {
  for (const auto& [m, n, k] :
       {std::array<std::int64_t, 3>{509, 251, 293}, {7, 4099, 769}, {3001, 3, 211}, {2, 3, 5}, {5, 7, 0}}) {
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

TEST(Gemm, KeepsTheOrderWhereManyStepsOfKArePackedInTurns) {
  const Product<float> p(Transpose::no, Transpose::no, 61, 1031, 4111);
  EXPECT_TRUE(same_bits(p.run_parallel(1), in_documented_order(p, 1)));
}

TEST(Gemm, StaysOnOneThreadWhereTheProductIsSmall) {
  const Product<float> p(Transpose::no, Transpose::yes, 67, 61, 59);
  set_threads(4);
  reset_parallel_counters();
  p.run_parallel(0);
  EXPECT_EQ(parallel_counters().parallel_loops, 0);
  set_threads(0);
}

TEST(Gemm, EmptySizesWriteWhatTheyShould) {
  std::vector<float> c(6, nan);
  gemm(Transpose::no, Transpose::no, 0, 3, 2, nullptr, 2, nullptr, 3, 0.0F, c.data(), 3);
  gemm(Transpose::no, Transpose::no, 2, 0, 2, nullptr, 2, nullptr, 0, 0.0F, c.data(), 3);
  EXPECT_TRUE(std::isnan(c[0]));
  std::fill(c.begin(), c.end(), 5.0F);
  gemm(Transpose::no, Transpose::yes, 2, 3, 0, nullptr, 0, nullptr, 0, 1.0F, c.data(), 3);
  EXPECT_EQ(c, std::vector<float>(6, 5.0F));
  c[1] = nan;
  gemm_parallel(Transpose::no, Transpose::yes, 2, 2, 0, nullptr, 0, nullptr, 0, 0.0F, c.data(), 3);
  EXPECT_EQ(c, (std::vector<float>{0, 0, 5, 0, 0, 5}));
}

TEST(Gemm, WritesOverUninitialisedOutputAndKeepsNanAndInfinity) {
  Product<float> p(Transpose::no, Transpose::no, 19, 37, 271);
  std::fill(p.c.begin(), p.c.end(), nan);
  for (const float x : p.run(0)) ASSERT_TRUE(std::isfinite(x));
  p.a[3 * p.lda + 270] = nan;
  p.b[269 * p.ldb + 5] = std::numeric_limits<float>::infinity();
  const auto got = p.run(0);
  for (std::int64_t i = 0; i < p.m; ++i) {
    for (std::int64_t j = 0; j < p.n; ++j) {
      const float x = got[i * p.ldc + j];
      if (i == 3) {
        EXPECT_TRUE(std::isnan(x));
      } else {
        EXPECT_EQ(std::isinf(x), j == 5);
      }
    }
  }
  p.a[4 * p.lda] = 0.0F;
  p.b[1] = std::numeric_limits<float>::infinity();
  EXPECT_TRUE(std::isnan(p.run(0)[4 * p.ldc + 1])) << "0 · infinity";
}

TEST(Gemm, GivesTheSameBitsOnEveryInstructionSet) {
  std::uint64_t checksum = 0xCBF29CE484222325U;
  for (const auto& [m, n, k] :
       {std::array<std::int64_t, 3>{16, 8, 16}, {61, 47, 71}, {1, 97, 509}, {131, 149, 541}}) {
    for (const Transpose ta : both) {
      for (const Transpose tb : both) {
        for (const float x : Product<float>(ta, tb, m, n, k).run(1)) {
          checksum = (checksum ^ std::bit_cast<std::uint32_t>(x)) * 0x100000001B3U;
        }
      }
    }
  }
  EXPECT_EQ(checksum, 6247778455793288029U);
}

TEST(Gemm, RefusesWhatItCannotMean) {
  float x = 0;
  const auto message = [&](std::int64_t m, std::int64_t k, std::int64_t lda, std::int64_t ldb,
                           std::int64_t ldc, float beta) -> std::string {
    try {
      gemm(Transpose::no, Transpose::yes, m, 3, k, &x, lda, &x, ldb, beta, &x, ldc);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(message(-2, 5, 5, 5, 3, 0), "gemm: sizes m -2, n 3, k 5 must not be negative");
  EXPECT_EQ(message(2, 5, 4, 5, 3, 0), "gemm: lda 4 is less than the row length 5");
  EXPECT_EQ(message(2, 5, 5, 3, 3, 0), "gemm: ldb 3 is less than the row length 5");
  EXPECT_EQ(message(2, 5, 5, 5, 2, 0), "gemm: ldc 2 is less than the row length 3");
  EXPECT_EQ(message(2, 5, 5, 5, 3, 0.5F), "gemm: beta 0.5 is neither 0 nor 1");
}

}  // namespace
}  // namespace headlab::kernels
