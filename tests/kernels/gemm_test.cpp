#include "framework/kernels/gemm.h"

#include <Eigen/Dense>
#include <gtest/gtest.h>

#include "framework/core/check.h"
#include "tests/kernels/gemm_product.h"

namespace headlab::kernels {
namespace {

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
