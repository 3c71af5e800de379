// recall, ask, sort, addition and glyphs, read back.
#include "framework/data/algorithm.h"

#include <algorithm>
#include <map>
#include <set>

#include <gtest/gtest.h>

#include "tests/data/support.h"

namespace headlab {
namespace {

TEST(Recall, QuestionsAskForWhatFollowedTheKey) {
  const RecallTask task;
  const Batch batch = task.batch(3, 1, 400);
  double questions = 0, guessed = 0;
  std::map<std::int64_t, double> offsets;
  for (std::int64_t b = 0; b < batch.size(); ++b) {
    std::map<std::int64_t, std::int64_t> value_at;
    std::map<std::int64_t, int> asked;
    for (std::int64_t t = 0; t < 24; ++t) {
      const std::int64_t id = at(batch.inputs[0], b, t);
      const bool question = at(batch.targets, b, t) != unscored;
      EXPECT_EQ(at(batch.head_targets[RecallTask::value], b, t) != unscored, question);
      EXPECT_EQ(at(batch.head_targets[RecallTask::previous], b, t), id >= 16 ? t - 1 : unscored);
      if (id >= 16) value_at[at(batch.inputs[0], b, t - 1)] = t;
      if (!question) continue;
      ++asked[id];
      EXPECT_EQ(at(batch.head_targets[RecallTask::value], b, t), value_at.at(id));
      EXPECT_EQ(at(batch.targets, b, t), at(batch.inputs[0], b, value_at.at(id)));
      ++offsets[t - value_at.at(id)];
      questions += 1;
    }
    const auto pairs = static_cast<std::int64_t>(value_at.size());
    EXPECT_TRUE(pairs >= 4 && pairs <= 8);
    std::set<std::int64_t> values;
    for (const auto& entry : value_at) values.insert(at(batch.inputs[0], b, entry.second));
    EXPECT_EQ(std::ssize(values), pairs);
    guessed += static_cast<double>(24 - 2 * pairs) / static_cast<double>(pairs);
    int least = 99, most = 0;  // whole permutations: every key as often as any other, up to one
    for (const auto& entry : value_at) {
      least = std::min(least, asked[entry.first]);
      most = std::max(most, asked[entry.first]);
    }
    EXPECT_LE(most - least, 1);
  }
  EXPECT_NEAR(guessed / questions, task.chance(), 0.012);
  double best = 0;
  for (const auto& entry : offsets) best = std::max(best, entry.second);
  EXPECT_NEAR(best / questions, *task.best_fixed_offset(), 0.012);
}

TEST(Ask, AnswersTheQuestionOfEachPosition) {
  const AskTask task;
  const Batch batch = task.batch(3, 1, 50);
  for (std::int64_t b = 0; b < batch.size(); ++b) {
    for (std::int64_t t = 0; t < 16; ++t) {
      const std::int64_t back = at(batch.inputs[1], b, t) + 1;
      EXPECT_EQ(at(batch.head_targets[0], b, t), t >= 8 ? t - back : unscored);
      EXPECT_EQ(at(batch.targets, b, t), t >= 8 ? at(batch.inputs[0], b, t - back) : unscored);
    }
  }
  EXPECT_EQ(task.token_text(1, 7), "8");
}

TEST(Sort, TheAnswerIsTheListInOrder) {
  const Batch batch = SortTask().batch(3, 1, 50);
  for (std::int64_t b = 0; b < batch.size(); ++b) {
    std::set<std::int64_t> values;
    for (std::int64_t t = 0; t < 8; ++t) values.insert(at(batch.inputs[0], b, t));
    ASSERT_EQ(values.size(), 8U);
    EXPECT_EQ(at(batch.inputs[0], b, 8), SortTask::separator);
    std::int64_t t = 8;
    for (const std::int64_t value : values) {  // in ascending order
      EXPECT_EQ(at(batch.targets, b, t), value);
      EXPECT_EQ(at(batch.inputs[0], b, at(batch.head_targets[0], b, t)), value);
      if (++t < 16) {
        EXPECT_EQ(at(batch.inputs[0], b, t), value);
      }
    }
    EXPECT_EQ(at(batch.targets, b, 7), unscored);
  }
}

TEST(Addition, SumsAreRightAndHeldOutPairsAreNotTrained) {
  const AdditionTask task;
  const auto check_all = [&](const Batch& batch, bool held_out) {
    for (std::int64_t b = 0; b < batch.size(); ++b) {
      const auto x = [&](std::int64_t t) { return at(batch.inputs[0], b, t); };
      const auto s = [&](std::int64_t i) { return at(batch.targets, b, 5 + i); };
      const std::int64_t first = 10 * x(0) + x(1), second = 10 * x(3) + x(4);
      EXPECT_EQ(s(0) + 10 * s(1) + 100 * s(2), first + second);
      EXPECT_EQ(x(6), s(0));
      EXPECT_EQ(x(7), s(1));
      EXPECT_EQ(AdditionTask::held_out_pair(first, second), held_out);
      EXPECT_EQ(at(batch.targets, b, 4), unscored);
      for (std::int64_t i = 0; i < 2; ++i) {
        EXPECT_EQ(at(batch.head_targets[0], b, 5 + i), 1 - i);
        EXPECT_EQ(at(batch.head_targets[1], b, 5 + i), 4 - i);
      }
      EXPECT_EQ(at(batch.head_targets[0], b, 7), unscored);
    }
  };
  check_all(task.batch(3, 1, 300), false);
  check_all(task.held_out(3, 0, 300), true);
  int held_out = 0;
  for (std::int64_t pair = 0; pair < 10000; ++pair) {
    held_out += AdditionTask::held_out_pair(pair / 100, pair % 100);
  }
  EXPECT_NEAR(held_out, 1000, 60);
  EXPECT_TRUE(AdditionTask::held_out_pair(0, 0));
  EXPECT_FALSE(AdditionTask::held_out_pair(0, 1));  // 2654435761 mod 10
}

// Noise is a fifth of a pixel: above one half is ink, wrongly in 0.6 % of pixels.
TEST(Glyphs, TheCueRepeatsTheShapeOfOneObjectWhoseTickIsTheClass) {
  const GlyphsTask task;
  const Batch batch = task.batch(3, 1, 200);
  const auto patch = [&](std::int64_t b, std::int64_t position) {
    std::vector<int> pixels;
    for (std::int64_t i = 0; i < 16; ++i)
      pixels.push_back(batch.inputs[0].at((b * 16 + position - 1) * 16 + i) > .5);
    return pixels;
  };
  double same_shape = 0, tick_right = 0, bars = 0;
  for (std::int64_t b = 0; b < batch.size(); ++b) {
    const std::int64_t cue = at(batch.head_targets[GlyphsTask::class_to_cue], b, 0);
    const std::int64_t match = at(batch.head_targets[GlyphsTask::class_to_match], b, 0);
    EXPECT_EQ(at(batch.head_targets[GlyphsTask::cue_to_match], b, cue), match);
    EXPECT_EQ(at(batch.head_targets[GlyphsTask::match_to_cue], b, match), cue);
    const std::vector<int> a = patch(b, cue), c = patch(b, match);
    bool same = true;
    for (const std::size_t i : {0, 1, 2, 4, 5, 6, 8, 9, 10}) same = same && a[i] == c[i];
    same_shape += same;
    bars += a[3] + a[7] + a[11];
    tick_right += c[static_cast<std::size_t>(12 + at(batch.targets, b, 0))];
    for (std::int64_t t = 1; t < 17; ++t) EXPECT_EQ(at(batch.targets, b, t), unscored);
  }
  EXPECT_GT(same_shape / 200, 0.8);
  EXPECT_GT(bars / 600, 0.97);
  EXPECT_GT(tick_right / 200, 0.97);
  EXPECT_TRUE(GlyphsTask::ink(2, 1, 2));  // 000001111
  EXPECT_FALSE(GlyphsTask::ink(2, 1, 1));
  EXPECT_EQ(task.labels(batch, 0)[0], "class");
  EXPECT_EQ(task.labels(batch, 0)[16], "3,3");
}

}  // namespace
}  // namespace headlab
