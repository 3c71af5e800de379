#include "framework/command/memory.h"

#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "framework/core/check.h"

namespace headlab {
namespace {

TEST(Memory, AddsUpArrays) {
  MemoryEstimate estimate;
  EXPECT_EQ(estimate.bytes(), 0);
  estimate.add({3, 5}).add({7}, 2, 8).add({}).add({0, std::numeric_limits<std::int64_t>::max()});
  EXPECT_EQ(estimate.bytes(), 60 + 112 + 4);
}

TEST(Memory, DoesNotWrapRound) {
  constexpr std::int64_t large = std::numeric_limits<std::int64_t>::max();
  EXPECT_GT(MemoryEstimate().add({large, large, large, large}).bytes(), 1e76);
  // 2^32 · 2^32 is 0 in 64 bits.
  EXPECT_EQ(MemoryEstimate().add({std::int64_t{1} << 32, std::int64_t{1} << 32}).bytes(), 0x1p66);
  EXPECT_THROW(MemoryEstimate().add({-1}), Error);
}

TEST(Memory, RefusesFourMatricesOfABillionByABillion) {
  MemoryEstimate estimate;
  estimate.add({1'000'000'000, 1'000'000'000}, 4);
  EXPECT_DOUBLE_EQ(estimate.bytes(), 1.6e19);
  try {
    check_fits("--d-model", estimate, 8.32e9);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "--d-model: about 16 EB of memory would be needed, this machine has 8.32 GB");
  }
  EXPECT_THROW(check_fits("--d-model", estimate), Error);
}

TEST(Memory, LetsAModelPassThatFits) {
  MemoryEstimate estimate;
  estimate.add({64, 64}, 4);
  EXPECT_NO_THROW(check_fits("--d-model", estimate));
  EXPECT_NO_THROW(check_fits("--d-model", estimate, estimate.bytes()));
}

TEST(Memory, KnowsTheMostThatWasUsed) {
  constexpr double block = 64e6;
  reset_peak_memory();
  const std::optional<double> before = peak_memory();
  if (!before) GTEST_SKIP() << "this system does not say";
  EXPECT_GT(*before, 1e6);
  {
    std::vector<char> used(static_cast<std::size_t>(block), 1);
    EXPECT_EQ(used[12345], 1);
  }
  EXPECT_GT(*peak_memory(), *before + 0.9 * block);
}

TEST(Memory, KnowsTheMachine) {
  EXPECT_GT(machine_memory(), 1e7);
  EXPECT_LT(machine_memory(), 1e17);
}

}  // namespace
}  // namespace headlab
