#include "framework/optim/schedule.h"

#include <cmath>
#include <limits>
#include <numbers>

#include <gtest/gtest.h>

#include "framework/core/check.h"

namespace headlab {
namespace {

std::string message_of(const ScheduleOptions& options) {
  try {
    const Schedule schedule(options);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(Schedule, WarmsUpToThePeakAndIsHalfWayDownInTheMiddle) {
  const Schedule schedule({.peak = 0.4, .floor = 0.04, .warm_up = 4, .total = 24});
  const double expected[] = {0.08, 0.16, 0.24, 0.32, 0.40};
  for (int i = 0; i < 5; ++i) EXPECT_NEAR(schedule.rate(i), expected[i], 1e-15) << i;
  EXPECT_NEAR(schedule.rate(14), 0.22, 1e-15);
  EXPECT_EQ(schedule.rate(24), 0.04);
  EXPECT_EQ(schedule.rate(1'000'000'000'000), 0.04);
}

TEST(Schedule, FollowsTheCosineOfTheMathsLibrary) {
  const Schedule schedule({.peak = 1, .floor = 0.125, .warm_up = 3, .total = 104});
  for (int i = 3; i < 104; ++i) {
    const double x = (i - 3) / 101.0;
    EXPECT_NEAR(schedule.rate(i), 0.125 + 0.875 / 2 * (1 + std::cos(std::numbers::pi * x)), 4e-16) << i;
  }
}

TEST(Schedule, WithoutWarmUpStartsAtThePeak) {
  const Schedule schedule({.peak = 0.4, .floor = 0.04, .warm_up = 0, .total = 8});
  EXPECT_EQ(schedule.rate(0), 0.4);
  EXPECT_NEAR(schedule.rate(4), 0.22, 1e-15);
  EXPECT_EQ(schedule.rate(8), 0.04);
}

TEST(Schedule, MayWarmUpForTheWholeRun) {
  const Schedule schedule({.peak = 0.4, .floor = 0.04, .warm_up = 4, .total = 4});
  EXPECT_NEAR(schedule.rate(3), 0.32, 1e-15);
  EXPECT_EQ(schedule.rate(4), 0.04);
}

TEST(Schedule, OfOneStepRunsItAtThePeak) {
  const Schedule schedule({.peak = 0.4, .floor = 0.04, .warm_up = 0, .total = 1});
  EXPECT_EQ(schedule.rate(0), 0.4);
  EXPECT_EQ(schedule.rate(1), 0.04);
  const Schedule warming({.peak = 0.4, .floor = 0.04, .warm_up = 1, .total = 1});
  EXPECT_EQ(warming.rate(0), 0.2);
}

TEST(Schedule, DecaysLinearly) {
  const Schedule schedule({.peak = 0.4, .floor = 0.04, .warm_up = 4, .total = 8, .decay = Decay::linear});
  const double expected[] = {0.08, 0.16, 0.24, 0.32, 0.40, 0.31, 0.22, 0.13, 0.04, 0.04};
  for (int i = 0; i < 10; ++i) EXPECT_NEAR(schedule.rate(i), expected[i], 1e-15) << i;
}

TEST(Schedule, ConstantStaysAtThePeak) {
  const Schedule schedule({.peak = 0.4, .warm_up = 1, .total = 3, .decay = Decay::constant});
  EXPECT_EQ(schedule.rate(0), 0.2);
  for (int i = 1; i < 7; ++i) EXPECT_EQ(schedule.rate(i), 0.4) << i;
}

TEST(Schedule, IsPositiveFirstThenRisesThenFallsBetweenFloorAndPeak) {
  for (const Decay decay : {Decay::cosine, Decay::linear, Decay::constant}) {
    for (const double peak : {0.1, 1.0 / 3, 3e-4, 1e-37, 1e38}) {
      const std::int64_t warm_up = 7, total = 1009;
      const double floor = peak * 0.3;
      const Schedule schedule({peak, floor, warm_up, total, decay});
      EXPECT_GT(schedule.rate(0), 0);
      for (std::int64_t i = 0; i < 1020; ++i) {
        const double rate = schedule.rate(i);
        ASSERT_TRUE(std::isfinite(rate));
        ASSERT_LE(rate, peak);
        if (i > 0 && i <= warm_up) {
          ASSERT_GT(rate, schedule.rate(i - 1));
        }
        if (i > warm_up) {
          ASSERT_GE(rate, floor) << i;
          ASSERT_LE(rate, schedule.rate(i - 1)) << i;
        }
      }
    }
  }
}

TEST(Schedule, RefusesContradictorySettingsNamingBothValues) {
  EXPECT_EQ(message_of({.warm_up = 5, .total = 4}), "schedule: warm-up 5 is longer than total 4");
  EXPECT_EQ(message_of({.peak = 0.4, .floor = 0.5}), "schedule: floor 0.5 is not in 0 … peak 0.4");
  EXPECT_EQ(message_of({.peak = 0.4, .floor = -0.5}), "schedule: floor -0.5 is not in 0 … peak 0.4");
  EXPECT_EQ(message_of({.total = 0}), "schedule: total 0 is not at least 1 step");
  EXPECT_EQ(message_of({.warm_up = -1, .total = 9}),
            "schedule: warm-up -1 is negative (allowed: 0 … total 9)");
}

TEST(Schedule, RefusesRatesThatAreNotPositiveAndFinite) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(message_of({.peak = 0}), "schedule: peak 0 is not a finite number above 0");
  EXPECT_EQ(message_of({.peak = -1}), "schedule: peak -1 is not a finite number above 0");
  EXPECT_EQ(message_of({.peak = nan}), "schedule: peak nan is not a finite number above 0");
  EXPECT_EQ(message_of({.peak = HUGE_VAL}), "schedule: peak inf is not a finite number above 0");
  EXPECT_EQ(message_of({.peak = 0.4, .floor = nan}), "schedule: floor nan is not in 0 … peak 0.4");
  EXPECT_EQ(message_of({.peak = 1e39}), "schedule: peak 1e+39 is larger than any f32 number");
  EXPECT_EQ(message_of({.peak = 2e-38, .warm_up = 3}),
            "schedule: peak 2e-38 over a warm-up of 3 steps starts at 5e-39, which f32 cannot hold");
  EXPECT_THROW(Schedule({.peak = 1}).rate(-1), Error);
}

TEST(Schedule, NamesItsDecays) {
  for (const Decay decay : {Decay::cosine, Decay::linear, Decay::constant})
    EXPECT_EQ(decay_named(name_of(decay)), decay);
  EXPECT_THROW(decay_named("step"), Error);
}

}  // namespace
}  // namespace headlab
