#include "framework/data/induction.h"

#include <algorithm>
#include <map>
#include <set>

#include <gtest/gtest.h>

#include "tests/data/support.h"

namespace headlab {
namespace {

TEST(Induction, TheLastSegmentRepeatsAnEarlierOne) {
  const Batch batch = InductionTask().batch(1, 2, 300);
  std::map<std::int64_t, int> lengths;
  for (std::int64_t b = 0; b < 300; ++b) {
    const auto x = [&](std::int64_t t) { return at(batch.inputs[0], b, t); };
    // The first token that was there before starts the copy.
    std::map<std::int64_t, std::int64_t> where;
    std::int64_t c = 0;
    while (where.count(x(c)) == 0) {
      where[x(c)] = c;
      ++c;
    }
    const std::int64_t length = 32 - c;
    const std::int64_t s = where[x(c)];
    ++lengths[length];
    EXPECT_TRUE(length >= 8 && length <= 12) << length;
    EXPECT_LE(s, 32 - 2 * length);
    std::set<std::int64_t> used;
    for (std::int64_t t = 0; t < 32; ++t) {
      if (t >= c) {
        EXPECT_EQ(x(t), x(s + t - c));
      }
      const bool scored = t >= c && t < 31;
      const std::int64_t key = at(batch.head_targets[InductionTask::successor], b, t);
      EXPECT_EQ(at(batch.targets, b, t), scored ? x(t + 1) : unscored);
      EXPECT_EQ(key, scored ? s + t - c + 1 : unscored);
      if (scored) {
        EXPECT_EQ(x(key), x(t + 1));
        EXPECT_EQ(x(key - 1), x(t));
        EXPECT_LT(key, c);
        used.insert(key);
      }
    }
    for (std::int64_t t = 0; t < 32; ++t) {
      EXPECT_EQ(at(batch.head_targets[InductionTask::previous], b, t), used.count(t) ? t - 1 : unscored);
    }
  }
  EXPECT_EQ(lengths.size(), 5U);
}

TEST(Induction, TheBestFixedOffsetIsNearTheStatedOne) {
  const InductionTask task;
  const Batch batch = task.batch(0, 0, 4000);
  std::map<std::int64_t, double> offsets;
  double pairs = 0;
  for (std::int64_t b = 0; b < batch.size(); ++b) {
    for (std::int64_t t = 0; t < 32; ++t) {
      const std::int64_t key = at(batch.head_targets[InductionTask::successor], b, t);
      if (key == unscored) continue;
      offsets[t - key] += 1;
      pairs += 1;
    }
  }
  double best = 0;
  for (const auto& entry : offsets) best = std::max(best, entry.second / pairs);
  EXPECT_NEAR(best, *task.best_fixed_offset(), 0.012);
}

}  // namespace
}  // namespace headlab
