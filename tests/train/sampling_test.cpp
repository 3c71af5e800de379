#include "framework/train/sampling.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "framework/core/check.h"
#include "framework/core/random.h"

namespace headlab {
namespace {

constexpr float inf = std::numeric_limits<float>::infinity();
constexpr float nan = std::numeric_limits<float>::quiet_NaN();
const std::vector<float> logits{1, 3, 2};
const std::vector<double> uniforms{0, 0.01, 0.25, 0.5, 0.75, 0.99, 1 - 0x1p-53};

void expect_near(const std::vector<double>& got, const std::vector<double>& expected) {
  ASSERT_EQ(got.size(), expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], expected[i], 5e-7) << i;
}

std::string message_of(const std::vector<float>& values, const SamplingOptions& options,
                       double uniform = 0.5) {
  try {
    sample(values, options, uniform);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(Sampling, DividesByTheTemperature) {
  expect_near(probabilities(logits, {}), {0.090031, 0.665241, 0.244728});
  expect_near(probabilities(logits, {.temperature = 0.5}), {0.015876, 0.866813, 0.117310});
  expect_near(probabilities(logits, {.temperature = 1e300}), {1.0 / 3, 1.0 / 3, 1.0 / 3});
}

TEST(Sampling, KeepsTheTopK) {
  expect_near(probabilities(logits, {.top_k = 2}), {0, 0.731059, 0.268941});
  const auto all = probabilities(logits, {});
  for (const std::int64_t k : {std::int64_t{3}, std::int64_t{4}, std::numeric_limits<std::int64_t>::max()})
    EXPECT_EQ(probabilities(logits, {.top_k = k}), all) << k;
}

TEST(Sampling, IsGreedyAtTemperatureZeroAtTinyOnesAndWithTopOne) {
  for (const double uniform : uniforms) {
    EXPECT_EQ(sample(logits, {.temperature = 0}, uniform), 1);
    EXPECT_EQ(sample(logits, {.temperature = 1e-30}, uniform), 1);
    EXPECT_EQ(sample(logits, {.temperature = 5e-324}, uniform), 1);
    EXPECT_EQ(sample(logits, {.top_k = 1}, uniform), 1);
  }
}

TEST(Sampling, GivesTiesToTheLowestToken) {
  const std::vector<float> tied{0, 2, 1, 2, 1, 1, 2};
  for (const double uniform : uniforms) {
    EXPECT_EQ(sample(tied, {.temperature = 0}, uniform), 1);
    EXPECT_EQ(sample(tied, {.top_k = 1}, uniform), 1);
  }
  expect_near(probabilities(tied, {.top_k = 2}), {0, 0.5, 0, 0.5, 0, 0, 0});
  const auto four = probabilities(tied, {.top_k = 4});
  EXPECT_GT(four[2], 0);
  EXPECT_EQ(four[4], 0);
  EXPECT_EQ(four[5], 0);
}

TEST(Sampling, SurvivesTheLargestLogits) {
  const float big = std::numeric_limits<float>::max();
  expect_near(probabilities(std::vector<float>{big, -big, big}, {}), {0.5, 0, 0.5});
  expect_near(probabilities(std::vector<float>{big, -big}, {.temperature = 1e-300}), {1, 0});
}

TEST(Sampling, TakesTheSliceThatHoldsTheUniformNumber) {
  EXPECT_EQ(sample(logits, {}, 0), 0);
  EXPECT_EQ(sample(logits, {}, 0.0900), 0);
  EXPECT_EQ(sample(logits, {}, 0.0901), 1);
  EXPECT_EQ(sample(logits, {}, 0.7552), 1);
  EXPECT_EQ(sample(logits, {}, 0.7553), 2);
  EXPECT_EQ(sample(logits, {}, 1 - 0x1p-53), 2);
}

TEST(Sampling, NeverTakesATokenThatCannotCome) {
  const std::vector<float> masked{-inf, 1, -inf, 1, -inf};
  for (const double uniform : uniforms) {
    const std::int64_t token = sample(masked, {}, uniform);
    EXPECT_TRUE(token == 1 || token == 3) << uniform;
  }
  // Ten equal slices add up to less than 1.
  std::vector<float> equal(10, 0.0F);
  equal.push_back(-inf);
  EXPECT_EQ(sample(equal, {}, 1 - 0x1p-53), 9);
}

TEST(Sampling, ComesAsOftenAsItsProbability) {
  std::vector<int> counts(3);
  Random random(5, Stream::sampling);
  constexpr int draws = 20000;
  for (int i = 0; i < draws; ++i) ++counts[static_cast<std::size_t>(sample(logits, {}, random.uniform()))];
  const auto p = probabilities(logits, {});
  for (std::size_t i = 0; i < 3; ++i) EXPECT_NEAR(counts[i] / double{draws}, p[i], 0.015) << i;
}

TEST(Sampling, RefusesSettingsThatMakeNoSense) {
  EXPECT_EQ(message_of(logits, {.temperature = -0.5}),
            "sampling: temperature -0.5 is not a finite number from 0 on");
  EXPECT_EQ(message_of(logits, {.temperature = std::nan("")}),
            "sampling: temperature nan is not a finite number from 0 on");
  EXPECT_EQ(message_of(logits, {.temperature = HUGE_VAL}),
            "sampling: temperature inf is not a finite number from 0 on");
  EXPECT_EQ(message_of(logits, {.top_k = -1}),
            "sampling: top-k -1 is negative (allowed: 0 for all, or 1 and more)");
  EXPECT_EQ(message_of(logits, {}, 1), "sampling: the uniform number 1 is not in [0, 1)");
  EXPECT_EQ(message_of(logits, {}, std::nan("")), "sampling: the uniform number nan is not in [0, 1)");
}

TEST(Sampling, RefusesLogitsWithoutADistribution) {
  for (const double temperature : {0.0, 1.0}) {
    const SamplingOptions options{.temperature = temperature, .top_k = 1};
    EXPECT_EQ(message_of({}, options), "sampling: the vocabulary is empty");
    EXPECT_EQ(message_of({1, 9, nan}, options), "sampling: the logit of token 2 is nan");
    EXPECT_EQ(message_of({1, inf, 2}, options), "sampling: the logit of token 1 is inf");
    EXPECT_EQ(message_of({-inf, -inf}, options), "sampling: all 2 logits are -inf, no token can come");
  }
}

}  // namespace
}  // namespace headlab
