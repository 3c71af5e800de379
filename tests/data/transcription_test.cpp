#include <algorithm>
#include <map>
#include <set>

#include <gtest/gtest.h>

#include "tests/data/support.h"

namespace headlab {
namespace {

struct Read {
  std::vector<std::int64_t> source;  ///< without padding and end mark
  std::int64_t begin = 0;            ///< its first slot
};

/// Checks that the valid slots are exactly the symbols and the end mark after them.
Read read_source(const Batch& batch, std::int64_t b) {
  Read read;
  bool ended = false;
  for (std::int64_t slot = 0; slot < 17; ++slot) {
    const bool valid = batch.source_valid.data<std::uint8_t>()[b * 17 + slot] == 1;
    const std::int64_t id = at(batch.inputs[0], b, slot);
    EXPECT_EQ(valid, id != TranscriptionTask::pad);
    if (!valid) continue;
    EXPECT_FALSE(ended);
    if (id == TranscriptionTask::end) {
      ended = true;
      continue;
    }
    if (read.source.empty()) read.begin = slot;
    read.source.push_back(id);
  }
  EXPECT_TRUE(ended);
  return read;
}

void check_rows(const TranscriptionTask& task, bool reversed) {
  const Batch batch = task.batch(8, 6, 200);
  std::set<std::size_t> lengths;
  for (std::int64_t b = 0; b < 200; ++b) {
    const Read read = read_source(batch, b);
    const auto length = static_cast<std::int64_t>(read.source.size());
    lengths.insert(read.source.size());
    EXPECT_EQ(read.begin, reversed ? 16 - length : 0);
    std::vector<std::int64_t> expected = read.source;
    if (reversed) std::reverse(expected.begin(), expected.end());
    expected.push_back(TranscriptionTask::end);

    EXPECT_EQ(at(batch.inputs[1], b, 0), TranscriptionTask::start);
    for (std::int64_t t = 0; t < 17; ++t) {
      const std::int64_t answer = at(batch.targets, b, t);
      const std::int64_t key = at(batch.head_targets[0], b, t);
      EXPECT_EQ(answer, t <= length ? expected[static_cast<std::size_t>(t)] : unscored);
      EXPECT_EQ(key, t >= length ? unscored : reversed ? 15 - t : t);
      if (t < length) {
        EXPECT_EQ(at(batch.inputs[0], b, key), answer);
        EXPECT_EQ(at(batch.inputs[1], b, t + 1), answer);  // teacher forcing
      } else if (t < 16) {
        EXPECT_EQ(at(batch.inputs[1], b, t + 1), TranscriptionTask::pad);
      }
    }
  }
  EXPECT_EQ(*lengths.begin(), 6U);
  EXPECT_EQ(*lengths.rbegin(), 16U);
}

TEST(Copy, StandsAtTheLeftAndAlignsOnTheDiagonal) { check_rows(CopyTask(), false); }

TEST(Reverse, StandsAtTheRightAndAlignsOnTheAntiDiagonal) { check_rows(ReverseTask(), true); }

TEST(Reverse, NoOffsetServesMoreThanOneSymbol) {
  const ReverseTask task;
  const Batch batch = task.held_out(0, 0, 1024);
  std::map<std::int64_t, double> offsets;
  double pairs = 0;
  for (std::int64_t b = 0; b < batch.size(); ++b) {
    for (std::int64_t t = 0; t < 17; ++t) {
      const std::int64_t key = at(batch.head_targets[0], b, t);
      if (key == unscored) continue;
      offsets[t - key] += 1;
      pairs += 1;
    }
  }
  double best = 0;
  for (const auto& entry : offsets) best = std::max(best, entry.second / pairs);
  EXPECT_NEAR(best, *task.best_fixed_offset(), 0.005);
}

TEST(Transcription, IsJudgedByWholeSequencesUnderGreedyDecoding) {
  const CopyTask task;
  EXPECT_EQ(task.accuracy(), Accuracy::whole_sequence);
  ASSERT_TRUE(task.greedy());
  EXPECT_EQ(task.greedy()->start, 1);
  EXPECT_EQ(task.greedy()->end, 2);
  EXPECT_EQ(task.head_targets()[0].site, AttentionSite::cross);
}

}  // namespace
}  // namespace headlab
