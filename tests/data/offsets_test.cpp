#include "framework/data/offsets.h"

#include <set>

#include <gtest/gtest.h>

#include "framework/data/prev.h"
#include "tests/data/support.h"

namespace headlab {
namespace {

TEST(Offsets, EachReadOutAsksForTheTokenThatFarBack) {
  const OffsetsTask task;
  const Batch batch = task.batch(2, 11, 64);
  for (std::int64_t b = 0; b < 64; ++b) {
    for (std::int64_t t = 0; t < 16; ++t) {
      for (std::int64_t i = 1; i <= 8; ++i) {
        const std::int64_t answer = at(batch.targets, b, t, i - 1);
        const std::int64_t key = at(batch.head_targets[static_cast<std::size_t>(i - 1)], b, t);
        EXPECT_EQ(key, t < 8 ? unscored : t - i);
        EXPECT_EQ(answer, t < 8 ? unscored : at(batch.inputs[0], b, t - i));
      }
    }
  }
}

TEST(Offsets, TokensAreUniform) {
  std::vector<int> counts(32);
  const Batch batch = OffsetsTask().batch(0, 0, 2000);
  for (const std::int64_t id : batch.inputs[0].values<std::int64_t>()) ++counts[static_cast<std::size_t>(id)];
  // 32 000 tokens: 1000 a kind, deviation 31.
  for (const int count : counts) EXPECT_NEAR(count, 1000, 160);
}

TEST(Offsets, NamesItsReadOutsAndTargetsAlike) {
  const OffsetsTask task;
  const Needs needs = task.needs();
  ASSERT_EQ(needs.readouts.size(), 8U);
  EXPECT_EQ(needs.readouts[7].name, "t-8");
  EXPECT_EQ(task.head_targets()[7].name, "t-8");
  EXPECT_EQ(task.head_targets()[7].readout, 7);
  EXPECT_EQ(needs.logits(), 256);
  EXPECT_EQ(needs.heads, 8);
  EXPECT_DOUBLE_EQ(needs.position_std, 3.0 / 8);
}

TEST(Prev, AsksForTheTokenBefore) {
  const Batch batch = PrevTask().batch(4, 0, 33);
  for (std::int64_t b = 0; b < 33; ++b) {
    EXPECT_EQ(at(batch.targets, b, 0), unscored);
    EXPECT_EQ(at(batch.head_targets[0], b, 0), unscored);
    for (std::int64_t t = 1; t < 16; ++t) {
      EXPECT_EQ(at(batch.targets, b, t), at(batch.inputs[0], b, t - 1));
      EXPECT_EQ(at(batch.head_targets[0], b, t), t - 1);
    }
  }
}

}  // namespace
}  // namespace headlab
