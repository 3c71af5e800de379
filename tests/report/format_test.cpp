#include "framework/report/format.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

namespace headlab {
namespace {

TEST(Format, GroupsDigits) {
  EXPECT_EQ(grouped(0), "0");
  EXPECT_EQ(grouped(999), "999");
  EXPECT_EQ(grouped(-999), "-999");
  EXPECT_EQ(grouped(1000), "1 000");
  EXPECT_EQ(grouped(36352), "36 352");
  EXPECT_EQ(grouped(-1234567), "-1 234 567");
  EXPECT_EQ(grouped(std::numeric_limits<std::int64_t>::min()), "-9 223 372 036 854 775 808");
}

TEST(Format, PicksAPrefix) {
  EXPECT_EQ(with_unit(0, "B"), "0 B");
  EXPECT_EQ(with_unit(999, "B"), "999 B");
  EXPECT_EQ(with_unit(999.6, "B"), "1 kB");
  EXPECT_EQ(with_unit(1540, "B"), "1.54 kB");
  EXPECT_EQ(with_unit(67.2e9, "FLOP"), "67.2 GFLOP");
  EXPECT_EQ(with_unit(1.6e19, "B"), "16 EB");
  EXPECT_EQ(with_unit(1.6e25, "B"), "1.6e+25 B");
  EXPECT_EQ(with_unit(-2500, "B"), "-2.5 kB");
  EXPECT_EQ(with_unit(HUGE_VAL, "B"), "inf B");
}

TEST(Format, WritesDurations) {
  EXPECT_EQ(duration(0), "0 s");
  EXPECT_EQ(duration(250e-9), "250 ns");
  EXPECT_EQ(duration(999.7e-9), "1 µs");
  EXPECT_EQ(duration(0.0123), "12.3 ms");
  EXPECT_EQ(duration(4.25), "4.25 s");
  EXPECT_EQ(duration(59.94), "59.9 s");
  EXPECT_EQ(duration(59.96), "1 min 00 s");
  EXPECT_EQ(duration(65), "1 min 05 s");
  EXPECT_EQ(duration(3599.6), "1 h 00 min");
  EXPECT_EQ(duration(7380), "2 h 03 min");
  EXPECT_EQ(duration(86399), "1 d 00 h");
  EXPECT_EQ(duration(273600), "3 d 04 h");
  EXPECT_EQ(duration(-65), "-1 min 05 s");
  EXPECT_EQ(duration(1e300), "1e+300 s");
  EXPECT_EQ(duration(std::nan("")), "nan s");
}

TEST(Format, FixesDecimals) {
  EXPECT_EQ(fixed(0.20949), "0.209");
  EXPECT_EQ(fixed(-0.0001), "0.000");
  EXPECT_EQ(fixed(-0.0), "0.000");
  EXPECT_EQ(fixed(-0.0006), "-0.001");
  EXPECT_EQ(fixed(3.7, 0), "4");
  EXPECT_EQ(fixed(1e300), "1.00e+300");
  EXPECT_EQ(fixed(std::nan("")), "nan");
  EXPECT_EQ(fixed(-HUGE_VAL), "-inf");
}

TEST(Format, ShowsTheSignOfADifference) {
  EXPECT_EQ(with_sign(0.61), "+0.610");
  EXPECT_EQ(with_sign(-0.012), "-0.012");
  EXPECT_EQ(with_sign(0), "0.000");
  EXPECT_EQ(with_sign(0.0001), "0.000");
  EXPECT_EQ(with_sign(HUGE_VAL), "+inf");
  EXPECT_EQ(with_sign(std::nan("")), "nan");
}

TEST(Format, WritesPercentages) {
  EXPECT_EQ(percent(0.934), "93.4 %");
  EXPECT_EQ(percent(1, 0), "100 %");
  EXPECT_EQ(percent(-0.00001), "0.0 %");
}

TEST(Format, WritesEstimatesWithTheirIntervals) {
  EXPECT_EQ(estimate(1.0, 0.0), "1.000 ± 0.000");
  EXPECT_EQ(estimate(0.2086, 0.0041), "0.209 ± 0.004");
  EXPECT_EQ(estimate(0.2086, std::nullopt), "0.209");
  EXPECT_EQ(estimate(std::nullopt, std::nullopt), "–");
  EXPECT_EQ(estimate(0.61, 0.0123, 2, true), "+0.61 ± 0.01");
}

}  // namespace
}  // namespace headlab
