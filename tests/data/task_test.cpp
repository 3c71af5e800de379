#include "framework/data/task.h"

#include <set>

#include <gtest/gtest.h>

#include "framework/core/check.h"
#include "tests/data/support.h"

namespace headlab {
namespace {

TEST(Tasks, AreAPureFunctionOfSeedIndexAndRow) {
  for (const auto& task : generated_tasks()) {
    SCOPED_TRACE(task->name());
    const std::vector<double> once = numbers(task->batch(5, 3, 7));
    EXPECT_EQ(once, numbers(task->batch(5, 3, 7)));
    EXPECT_NE(once, numbers(task->batch(5, 4, 7)));
    EXPECT_NE(once, numbers(task->batch(6, 3, 7)));
    const std::vector<double> held_out = numbers(task->held_out(5, 3, 7));
    EXPECT_EQ(held_out, numbers(task->held_out(5, 3, 7)));
    EXPECT_NE(held_out, numbers(task->held_out(6, 3, 7)));
    EXPECT_NE(held_out, once);
  }
}

TEST(Tasks, ShardsOfABatchAreThatBatch) {
  for (const auto& task : generated_tasks()) {
    SCOPED_TRACE(task->name());
    const Batch whole = task->batch(1, 2, 5);
    const Batch tail = task->batch(1, 2, 3, 2);
    for (std::size_t stream = 0; stream < whole.inputs.size(); ++stream) {
      const Array expected = whole.inputs[stream].range(2, 5);
      ASSERT_EQ(expected.shape(), tail.inputs[stream].shape());
      for (std::int64_t i = 0; i < expected.size(); ++i) EXPECT_EQ(expected.at(i), tail.inputs[stream].at(i));
    }
  }
}

TEST(Tasks, HeldOutSequencesAreNewAndTheHalvesAreDisjoint) {
  // A row of offsets is one of 32^16: the same row twice means the same random numbers.
  const OffsetsTask task;
  EXPECT_EQ(task.held_out_size(), 1024);
  EXPECT_EQ(task.held_out_size(HeldOut::choose), 512);
  EXPECT_EQ(task.held_out_size(HeldOut::score), 512);
  std::set<std::vector<std::int64_t>> rows;
  std::size_t added = 0;
  const auto add = [&](const Batch& batch) {
    for (std::int64_t b = 0; b < batch.size(); ++b) {
      const std::int64_t* row = example_of(batch.inputs[0], b);
      rows.insert(std::vector<std::int64_t>(row, row + OffsetsTask::context));
      ++added;
    }
  };
  add(task.held_out(0, 0, 512, HeldOut::choose));
  add(task.held_out(0, 0, 512, HeldOut::score));
  for (std::int64_t index = 0; index < 20; ++index) add(task.batch(0, index, 32));
  EXPECT_EQ(rows.size(), added);
  add(task.held_out(0, 0, 1024));  // the halves again
  EXPECT_EQ(rows.size() + 1024, added);
}

TEST(Tasks, HaveTheShapesThatTheyDeclare) {
  for (const auto& task : generated_tasks()) {
    SCOPED_TRACE(task->name());
    const Needs needs = task->needs();
    const bool encoder = needs.architecture == Architecture::encoder_decoder;
    for (const std::int64_t size : {0, 1, 3}) {
      const Batch batch = task->batch(0, 0, size);
      EXPECT_EQ(batch.size(), size);
      ASSERT_EQ(batch.inputs.size(), needs.patch_width > 0 ? 1 : needs.streams.size());
      for (std::size_t s = 0; s < needs.streams.size(); ++s) {
        const std::int64_t length = encoder && s == 0 ? needs.source_context : needs.context;
        EXPECT_EQ(batch.inputs[s].shape(), Shape({size, length}));
      }
      const auto readouts = static_cast<std::int64_t>(needs.readouts.size());
      EXPECT_EQ(batch.targets.shape(), Shape({size, needs.context, readouts}));
      EXPECT_EQ(static_cast<bool>(batch.source_valid), encoder);
      ASSERT_EQ(batch.head_targets.size(), task->head_targets().size());
      for (const Array& keys : batch.head_targets) EXPECT_EQ(keys.shape(), Shape({size, needs.context}));
      ASSERT_EQ(batch.probes.size(), task->probes().size());
      for (const Array& probe : batch.probes) EXPECT_EQ(probe.shape(), Shape({size, needs.context}));
    }
  }
}

TEST(Tasks, KeepIdsClassesAndKeysInRangeAndCausal) {
  for (const auto& task : generated_tasks()) {
    SCOPED_TRACE(task->name());
    const Needs needs = task->needs();
    const Batch batch = task->batch(9, 1, 101);
    for (std::size_t s = 0; s < needs.streams.size(); ++s) {
      for (const std::int64_t id : batch.inputs[s].values<std::int64_t>()) {
        EXPECT_TRUE(id >= 0 && id < needs.streams[s].vocabulary) << id;
      }
    }
    const std::vector<HeadTarget> heads = task->head_targets();
    for (std::int64_t b = 0; b < batch.size(); ++b) {
      for (std::int64_t t = 0; t < needs.context; ++t) {
        for (std::size_t r = 0; r < needs.readouts.size(); ++r) {
          const std::int64_t target = at(batch.targets, b, t, static_cast<std::int64_t>(r));
          EXPECT_TRUE(target >= unscored && target < needs.readouts[r].classes) << target;
        }
        for (std::size_t g = 0; g < heads.size(); ++g) {
          const std::int64_t key = at(batch.head_targets[g], b, t);
          const bool cross = heads[g].site == AttentionSite::cross;
          const std::int64_t seen = needs.causal ? t + 1 : needs.context;
          EXPECT_TRUE(key >= unscored && key < (cross ? needs.source_context : seen)) << key;
          EXPECT_LT(heads[g].readout, static_cast<int>(needs.readouts.size()));
        }
      }
    }
  }
}

TEST(Tasks, SpellExamples) {
  const RolesTask roles;
  const Batch batch = roles.batch(0, 0, 1);
  const std::vector<std::string> labels = roles.labels(batch, 0);
  ASSERT_EQ(labels.size(), 24U);
  EXPECT_EQ(labels[7],
            roles.token_text(0, at(batch.inputs[0], 0, 7)) + roles.token_text(1, at(batch.inputs[1], 0, 7)));
  EXPECT_EQ(OffsetsTask().token_text(0, 31), "F");
  const CopyTask copy;
  EXPECT_EQ(copy.labels(copy.batch(0, 0, 1), 0)[0], "<");
  EXPECT_EQ(copy.labels(copy.batch(0, 0, 1), 0, true).size(), 17U);
}

TEST(Tasks, RefuseWhatIsNotThere) {
  const OffsetsTask task;
  EXPECT_EQ(message_of([&] { task.held_out(0, 510, 3, HeldOut::score); }),
            "offsets: held-out sequences 510 to 513 were asked for, there are 512");
  EXPECT_EQ(message_of([&] { task.batch(0, -1, 1); }),
            "offsets: batch -1 with rows from 0, size 1: all must be >= 0");
  EXPECT_EQ(message_of([&] { task.token_text(0, 32); }), "offsets: token 32 is not in 0 to 31");
  EXPECT_EQ(message_of([&] { task.token_text(1, 0); }), "offsets: stream 1 was asked for, there are 1");
  EXPECT_EQ(message_of([&] { task.labels(task.batch(0, 0, 2), 2); }), "offsets: example 2 of a batch of 2");
  EXPECT_EQ(message_of([&] { task.labels(task.batch(0, 0, 2), 0, true); }), "offsets: has no source");
}

TEST(Tasks, NeedTheStatedNumbersOfParameters) {
  EXPECT_EQ(OffsetsTask().needs().parameters(),
            32 * 64 + 16 * 64 + 4 * 64 * 64 + 2 * 2 * 64 + 64 * 256 + 256);
  EXPECT_EQ(OffsetsTask().needs().parameters(), 36352);
  EXPECT_EQ(PrevTask().needs().parameters(), 21792);
  EXPECT_EQ(RolesTask().needs().parameters(), 21536);
  EXPECT_EQ(InductionTask().needs().parameters(), 37056);
  EXPECT_EQ(CopyTask().needs().parameters(), 89043);
  EXPECT_EQ(ReverseTask().needs().parameters(), 89043);
  EXPECT_EQ(AskTask().needs().parameters(), 22304);
  Needs wide = OffsetsTask().needs();
  wide.head_size = 16;  // 8 heads of 16: W_Q, W_K, W_V, W_O of 64 × 128
  EXPECT_EQ(wide.parameters(), 36352 + 4 * 64 * 64);
}

TEST(Recipe, WarmsUpForAShareOrANumberOfSteps) {
  EXPECT_EQ(OffsetsTask().recipe().warmup(600), 30);
  EXPECT_EQ(InductionTask().recipe().warmup(600), 30);
  EXPECT_EQ(InductionTask().recipe().warmup(7), 7);
  EXPECT_EQ(CopyTask().recipe().warmup(150), 8);
}

}  // namespace
}  // namespace headlab
