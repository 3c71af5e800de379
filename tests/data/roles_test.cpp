#include "framework/data/roles.h"

#include <algorithm>
#include <map>

#include <gtest/gtest.h>

#include "tests/data/support.h"

namespace headlab {
namespace {

TEST(Roles, AnswersFollowFromLettersAndPayloads) {
  const Batch batch = RolesTask().batch(3, 5, 200);
  for (std::int64_t b = 0; b < 200; ++b) {
    const auto x = [&](std::int64_t t) { return at(batch.inputs[0], b, t); };
    const auto y = [&](std::int64_t t) { return at(batch.inputs[1], b, t); };
    std::map<std::int64_t, std::int64_t> latest;  // letter → position before t
    std::int64_t low = 0;
    for (std::int64_t t = 0; t < 24; ++t) {
      low += x(t) < 6;
      const std::int64_t high = t + 1 - low;
      const auto next = latest.find(x(t) == 11 ? 0 : x(t) + 1);
      const bool scored = t >= 4;
      const bool found = scored && next != latest.end();
      EXPECT_EQ(at(batch.targets, b, t, RolesTask::prev), scored ? y(t - 1) : unscored);
      EXPECT_EQ(at(batch.targets, b, t, RolesTask::first), scored ? y(0) : unscored);
      EXPECT_EQ(at(batch.targets, b, t, RolesTask::succ), found ? y(next->second) : unscored);
      EXPECT_EQ(at(batch.targets, b, t, RolesTask::maj), scored && low != high ? low > high : unscored);
      EXPECT_EQ(at(batch.head_targets[0], b, t), scored ? t - 1 : unscored);
      EXPECT_EQ(at(batch.head_targets[1], b, t), scored ? 0 : unscored);
      EXPECT_EQ(at(batch.head_targets[2], b, t), found ? next->second : unscored);
      EXPECT_EQ(at(batch.head_targets[3], b, t), scored && low != high ? 0 : unscored);
      latest[x(t)] = t;
    }
  }
  EXPECT_EQ(RolesTask().head_targets()[3].kind, HeadTarget::Kind::uniform);
}

TEST(Roles, ChanceAndTheBestOffsetForSuccAreNearTheStatedOnes) {
  const RolesTask task;
  const Batch batch = task.held_out(0, 0, 1024);
  double scored = 0, guessed = 0;
  double pairs = 0;
  std::map<std::int64_t, double> offsets;
  for (std::int64_t b = 0; b < batch.size(); ++b) {
    for (std::int64_t t = 4; t < 24; ++t) {
      for (std::int64_t r = 0; r < 4; ++r) {
        if (at(batch.targets, b, t, r) == unscored) continue;
        scored += 1;
        guessed += r == RolesTask::maj ? 1.0 / 2 : 1.0 / 8;
      }
      const std::int64_t key = at(batch.head_targets[2], b, t);
      if (key == unscored) continue;
      pairs += 1;
      offsets[t - key] += 1;
    }
  }
  EXPECT_NEAR(guessed / scored, task.chance(), 0.005);
  double best = 0;
  for (const auto& entry : offsets) best = std::max(best, entry.second / pairs);
  EXPECT_NEAR(best, 0.13, 0.015);
}

}  // namespace
}  // namespace headlab
