#include "framework/core/significance.h"

#include <cmath>
#include <numbers>

#include <gtest/gtest.h>

#include "framework/core/check.h"
#include "framework/core/random.h"

namespace headlab {
namespace {

TEST(Significance, IncompleteBetaMeetsItsClosedForms) {
  for (const double x : {0.0, 1e-9, 0.01, 0.2, 0.5, 0.77, 0.999, 1.0}) {
    EXPECT_NEAR(incomplete_beta(x, 1, 1), x, 1e-14);
    EXPECT_NEAR(incomplete_beta(x, 7, 1), std::pow(x, 7), 1e-14);
    EXPECT_NEAR(incomplete_beta(x, 1, 7), 1 - std::pow(1 - x, 7), 1e-14);
    EXPECT_NEAR(incomplete_beta(x, 2, 3), 6 * x * x - 8 * x * x * x + 3 * x * x * x * x, 1e-14);
    EXPECT_NEAR(incomplete_beta(x, 0.5, 0.5), 2 / std::numbers::pi * std::asin(std::sqrt(x)), 1e-14);
  }
  EXPECT_NEAR(incomplete_beta(1e-9, 7, 1) / 1e-63, 1, 1e-12);  // relative, far out in the tail
  EXPECT_THROW(incomplete_beta(1.5, 1, 1), Error);
  EXPECT_THROW(incomplete_beta(0.5, 0, 1), Error);
  EXPECT_THROW(incomplete_beta(std::nan(""), 1, 1), Error);
}

TEST(Significance, StudentQuantilesMeetTheTables) {
  EXPECT_NEAR(student_t_quantile(0.975, 4), 2.776445, 5e-7);
  EXPECT_NEAR(student_t_quantile(0.975, 4), 2.7764451052, 1e-10);
  EXPECT_NEAR(student_t_quantile(0.975, 1), 12.7062047364, 1e-9);
  EXPECT_NEAR(student_t_quantile(0.975, 2), 4.3026527297, 1e-10);
  EXPECT_NEAR(student_t_quantile(0.975, 3), 3.1824463053, 1e-10);
  EXPECT_NEAR(student_t_quantile(0.975, 9), 2.2621571628, 1e-10);
  EXPECT_NEAR(student_t_quantile(0.975, 30), 2.0422724563, 1e-10);
  EXPECT_NEAR(student_t_quantile(0.975, 100), 1.9839715185, 1e-10);
  EXPECT_NEAR(student_t_quantile(0.995, 4), 4.6040948714, 1e-10);
  EXPECT_NEAR(student_t_quantile(0.95, 4), 2.1318467863, 1e-10);
}

TEST(Significance, StudentQuantilesMeetTheirClosedFormsAndLimit) {
  for (const double p : {1e-6, 0.001, 0.1, 0.3, 0.5, 0.6, 0.9, 0.999, 0.999999}) {
    const double cauchy = p == 0.5 ? 0 : -1 / std::tan(std::numbers::pi * p);
    EXPECT_NEAR(student_t_quantile(p, 1), cauchy, 1e-10 * (1 + std::abs(cauchy))) << p;
    const double two = (2 * p - 1) / std::sqrt(2 * p * (1 - p));
    EXPECT_NEAR(student_t_quantile(p, 2), two, 1e-11 * (1 + std::abs(two))) << p;
    EXPECT_NEAR(student_t_quantile(p, 1e8), normal_quantile(p), 1e-6) << p;
    EXPECT_NEAR(student_t_quantile(p, 7), -student_t_quantile(1 - p, 7), 1e-8) << p;
    const double t = student_t_quantile(p, 5.5);
    EXPECT_NEAR(student_t_two_sided(t, 5.5), 2 * std::min(p, 1 - p), 1e-12) << p;
  }
  EXPECT_EQ(student_t_two_sided(0, 4), 1);
  EXPECT_EQ(student_t_two_sided(HUGE_VAL, 4), 0);
}

TEST(Significance, StudentRefusesNonsense) {
  EXPECT_THROW(student_t_quantile(0, 4), Error);
  EXPECT_THROW(student_t_quantile(1, 4), Error);
  EXPECT_THROW(student_t_quantile(0.975, 0), Error);
  EXPECT_THROW(student_t_two_sided(std::nan(""), 4), Error);
}

TEST(Significance, HolmStepsDown) {
  using P = std::vector<std::optional<double>>;
  const P adjusted = holm(P{0.01, 0.04, 0.03, 0.005});
  const std::vector<double> expected{0.03, 0.06, 0.06, 0.02};
  for (std::size_t i = 0; i < 4; ++i) EXPECT_NEAR(adjusted[i].value(), expected[i], 1e-15) << i;
  EXPECT_EQ(holm(P{0.6, 0.9}), (P{1.0, 1.0}));
  EXPECT_EQ(holm(P{}), P{});
  EXPECT_THROW(holm(P{1.5}), Error);
}

TEST(Significance, HolmCountsTestsThatWereNotMade) {
  using P = std::vector<std::optional<double>>;
  EXPECT_EQ(holm(P{std::nullopt, 0.015625, std::nullopt}), (P{std::nullopt, 0.046875, std::nullopt}));
}

TEST(Significance, SignFlipsByHand) {
  EXPECT_EQ(sign_flip_test(std::vector<double>{1, 2, 3, 4, 5, 6, 7}), 2.0 / 128);
  EXPECT_EQ(sign_flip_test(std::vector<double>{-1, -2, -3, -4, -5, -6, -7}), 2.0 / 128);
  // |sum| >= 5: all alike (2 ways) or one different (14 ways).
  EXPECT_EQ(sign_flip_test(std::vector<double>{1, 1, 1, 1, 1, 1, -1}), 16.0 / 128);
  EXPECT_EQ(sign_flip_test(std::vector<double>{1, -1, 2, -2, 3, -3, 0}), 1);
  EXPECT_EQ(sign_flip_test(std::vector<double>(7, 0.0)), 1);
  EXPECT_EQ(sign_flip_test(std::vector<double>(40, 0.125)), std::ldexp(1.0, -39));
}

TEST(Significance, SignFlipsAgreeWithCountingInWholeNumbers) {
  Random random(3, Stream::statistics);
  for (int repeat = 0; repeat < 20; ++repeat) {
    std::vector<int> units(7 + static_cast<std::size_t>(repeat % 5));
    std::vector<double> differences;
    for (int& unit : units) {
      unit = static_cast<int>(random.below(15)) - 5;
      differences.push_back(0.1 * unit);  // tenths: sums that tie only up to rounding
    }
    int seen = 0;
    for (const int unit : units) seen += unit;
    int extreme = 0;
    const int ways = 1 << units.size();
    for (int signs = 0; signs < ways; ++signs) {
      int sum = 0;
      for (std::size_t i = 0; i < units.size(); ++i) sum += (signs >> i & 1) ? units[i] : -units[i];
      extreme += std::abs(sum) >= std::abs(seen);
    }
    EXPECT_EQ(sign_flip_test(differences), static_cast<double>(extreme) / ways) << repeat;
  }
}

TEST(Significance, SignFlipsRefuseTooFewTooManyAndNan) {
  EXPECT_THROW(sign_flip_test(std::vector<double>(6, 1.0)), Error);
  EXPECT_THROW(sign_flip_test(std::vector<double>(41, 1.0)), Error);
  EXPECT_THROW(sign_flip_test(std::vector<double>(7, std::nan(""))), Error);
}

}  // namespace
}  // namespace headlab
