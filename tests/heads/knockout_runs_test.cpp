#include "framework/heads/knockout_runs.h"

#include <numeric>

#include <gtest/gtest.h>

#include "framework/data/agreement.h"
#include "framework/data/ask.h"
#include "framework/data/glyphs.h"
#include "framework/data/induction.h"
#include "framework/data/offsets.h"
#include "framework/data/reverse.h"
#include "framework/data/senses.h"
#include "framework/heads/knockout.h"
#include "models/build.h"
#include "tests/heads/support.h"
#include "tests/support/errors.h"
#include "tests/support/tiny_task.h"

namespace headlab {
namespace {

constexpr How all_hows[] = {How::zero, How::mean, How::resample, How::uniform, How::frozen};

// Three layers of three heads.
Needs deep() {
  Needs needs = TinyTask().needs();
  needs.layers = 3;
  return needs;
}

std::unique_ptr<Model> fresh(const Needs& needs, std::uint64_t seed = 5) {
  auto model = build_model(needs);
  initialise(*model, seed);
  return model;
}

const std::vector<HeadList> some_sets = {{},
                                         {{0, 0}},
                                         {{1, 2}},
                                         {{2, 1}},
                                         {{0, 1}, {0, 2}},
                                         {{0, 1}, {2, 0}},
                                         {{0, 1}, {1, 1}, {2, 0}},
                                         {{1, 2}, {2, 1}},
                                         {{0, 0}}};

void expect_same(const KnockoutRuns& a, const KnockoutRuns& b, const std::string& what) {
  ASSERT_EQ(a.answers.size(), b.answers.size()) << what;
  for (std::size_t i = 0; i < a.answers.size(); ++i) {
    EXPECT_EQ(a.answers[i].sequence_losses, b.answers[i].sequence_losses) << what << ", set " << i;
    EXPECT_EQ(a.answers[i].sequence_right, b.answers[i].sequence_right) << what << ", set " << i;
    EXPECT_EQ(a.answers[i].readouts, b.answers[i].readouts) << what << ", set " << i;
    EXPECT_EQ(a.answers[i].sequence, b.answers[i].sequence) << what << ", set " << i;
  }
}

TEST(KnockoutRuns, SharedStagesGiveTheBitsOfWholePasses) {
  const TinyTask task;
  const auto model = fresh(deep());
  for (const How how : all_hows) {
    for (const Path path : {Path::all, Path::residual}) {
      KnockoutOptions options{.batch_size = 7, .how = how, .path = path};
      const KnockoutRuns shared = answers_without_each(*model, task, 3, some_sets, options);
      options.reuse = false;
      const KnockoutRuns whole = answers_without_each(*model, task, 3, some_sets, options);
      EXPECT_TRUE(shared.staged);
      EXPECT_FALSE(whole.staged);
      EXPECT_LT(10 * shared.run, 8 * shared.whole);
      expect_same(shared, whole, name_of(how) + " " + name_of(path));
      EXPECT_NE(shared.answers[1].loss, shared.answers[0].loss);
    }
  }
}

TEST(KnockoutRuns, SharedStagesGiveTheBitsOfWholePassesInAnEncoderDecoder) {
  const ReverseTask task;
  Needs needs = task.needs();
  needs.layers = 2;
  const auto model = fresh(needs);
  const std::int64_t layers = std::ssize(head_layers(*model));
  ASSERT_EQ(layers, 6);
  std::vector<HeadList> sets{{}};
  for (std::int64_t layer = 0; layer < layers; ++layer) sets.push_back({{layer, layer % needs.heads}});
  sets.push_back({{0, 0}, {3, 1}, {5, 0}});
  for (const How how : all_hows) {
    KnockoutOptions options{.batch_size = 8, .how = how, .sequences = 16};
    const KnockoutRuns shared = answers_without_each(*model, task, 3, sets, options);
    options.reuse = false;
    expect_same(shared, answers_without_each(*model, task, 3, sets, options), name_of(how));
    for (std::size_t i = 1; i < sets.size(); ++i) {
      EXPECT_NE(shared.answers[i].loss, shared.answers[0].loss) << name_of(how) << " " << i;
    }
  }
}

TEST(KnockoutRuns, SharedStagesGiveTheBitsOfWholePassesWithProbesPaddingAndPatches) {
  const AgreementTask agreement;
  const SensesTask senses;
  const GlyphsTask glyphs;
  for (const Task* task : {static_cast<const Task*>(&agreement), static_cast<const Task*>(&senses),
                           static_cast<const Task*>(&glyphs)}) {
    const auto model = fresh(task->needs());
    std::vector<HeadList> sets{{}};
    for (const HeadId id : all_heads(*model)) sets.push_back({id});
    KnockoutOptions options{.batch_size = 8, .sequences = 12};
    const KnockoutRuns shared = answers_without_each(*model, *task, 3, sets, options);
    options.reuse = false;
    expect_same(shared, answers_without_each(*model, *task, 3, sets, options), task->name());
    EXPECT_NE(shared.answers[1].loss, shared.answers[0].loss) << task->name();
    // The counts of sequences add up to the shares, of probes too.
    const Answers& intact = shared.answers[0];
    ASSERT_EQ(intact.sequence_right.size(), intact.readouts.size()) << task->name();
    for (std::size_t r = 0; r < intact.readouts.size(); ++r) {
      ASSERT_EQ(intact.sequence_right[r].size(), 12U) << task->name();
      const auto sum = [](const auto& counts) { return std::accumulate(counts.begin(), counts.end(), 0); };
      EXPECT_DOUBLE_EQ(sum(intact.sequence_right[r]) / static_cast<double>(sum(intact.sequence_scored[r])),
                       intact.readouts[r])
          << task->name() << ", answer " << r;
    }
  }
}

// Scored positions begin late: the last layer leaves out the queries before them.
TEST(KnockoutRuns, SharedStagesGiveTheBitsOfWholePassesWhereScoresBeginLate) {
  const OffsetsTask offsets;
  const AskTask ask;
  const InductionTask induction;
  for (const Task* task : {static_cast<const Task*>(&offsets), static_cast<const Task*>(&ask),
                           static_cast<const Task*>(&induction)}) {
    Needs needs = task->needs();
    needs.layers = 2;
    const auto model = fresh(needs);
    std::vector<HeadList> sets{{}, {{0, 1}, {1, 0}}};
    for (const HeadId id : all_heads(*model)) sets.push_back({id});
    for (const How how : {How::zero, How::mean, How::resample, How::frozen}) {
      KnockoutOptions options{.batch_size = 5, .how = how, .sequences = 7};
      const KnockoutRuns shared = answers_without_each(*model, *task, 3, sets, options);
      options.reuse = false;
      expect_same(shared, answers_without_each(*model, *task, 3, sets, options),
                  task->name() + " " + name_of(how));
      for (std::size_t i = 1; i < sets.size(); ++i) {
        EXPECT_NE(shared.answers[i].loss, shared.answers[0].loss) << task->name() << " " << i;
      }
    }
  }
}

TEST(KnockoutRuns, AnEmptySetIsTheIntactModelAndZeroIsAGateOfZero) {
  const TinyTask task;
  const auto model = fresh(deep());
  const KnockoutRuns runs = answers_without_each(*model, task, 3, some_sets, {.batch_size = 7});
  const Answers intact = answers(*model, task, 3);
  EXPECT_EQ(runs.answers[0].sequence_losses, intact.sequence_losses);
  EXPECT_EQ(runs.answers[0].readouts, intact.readouts);
  EXPECT_EQ(runs.answers[0].pooled, intact.pooled);
  const Knockout knockout(*model, some_sets[5]);
  EXPECT_EQ(runs.answers[5].sequence_losses, answers(*model, task, 3).sequence_losses);
}

TEST(KnockoutRuns, WhatIsReplacedIsWhatWasAskedFor) {
  const TinyTask task;
  const auto model = fresh(deep());
  const std::int64_t size = task.held_out_size(HeldOut::score);
  const Batch batch = task.held_out(3, 0, size, HeldOut::score);
  const Looking looking(*model);
  const ActivationCache clean(*model, {"blocks.1.attn.z", "blocks.1.attn.v"});
  model->logits(batch);
  const Array z = clean["blocks.1.attn.z"];  // [size, 5, 12], head 2 in columns 8 to 11
  const Array v = clean["blocks.1.attn.v"];
  for (const How how : {How::mean, How::resample, How::uniform}) {
    Intervention intervention(*model, how, Path::all, 3);
    if (intervention.wants_means()) intervention.add_to_means(batch);
    intervention.prepare(batch, 0);
    const ActivationCache seen(*model, {"blocks.1.attn.z"});
    const std::vector<HeadId> head = {{1, 2}};
    intervention.logits(mask_of_heads(*model, head));
    const Array changed = seen["blocks.1.attn.z"];
    for (std::int64_t b = 0; b < size; ++b) {
      for (std::int64_t t = 0; t < 5; ++t) {
        const std::int64_t row = (b * 5 + t) * 12;
        for (std::int64_t c = 0; c < 8; ++c) ASSERT_NEAR(changed.at(row + c), z.at(row + c), 1e-5);
        double expected = 0;
        if (how == How::mean) {
          for (std::int64_t i = 0; i < size * 5; ++i)
            expected += z.at(i * 12 + 9) / static_cast<double>(size * 5);
        } else if (how == How::uniform) {
          for (std::int64_t j = 0; j <= t; ++j)
            expected += v.at((b * 5 + j) * 12 + 9) / static_cast<double>(t + 1);
        }
        if (how != How::resample) {
          EXPECT_NEAR(changed.at(row + 9), expected, 1e-5) << name_of(how);
          continue;
        }
        // Examples that begin with the same token have the same z there.
        if (t == 4) {
          EXPECT_NE(changed.at(row + 9), z.at(row + 9));
        }
        bool from_another = false;
        for (std::int64_t other = 0; other < size; ++other) {
          from_another = from_another || changed.at(row + 9) == z.at((other * 5 + t) * 12 + 9);
        }
        EXPECT_TRUE(from_another);
      }
    }
  }
}

TEST(KnockoutRuns, FrozenKeepsThePatternsOfTheIntactRun) {
  const TinyTask task;
  const auto model = fresh(deep());
  const Batch batch = task.held_out(3, 0, 7);
  const Looking looking(*model);
  const std::string later = "blocks.2.attn.pattern";
  const ActivationCache clean(*model, {later});
  model->logits(batch);
  const Array intact = clean[later];
  const std::vector<HeadId> head = {{0, 1}};
  for (const How how : {How::zero, How::frozen}) {
    Intervention intervention(*model, how, Path::all, 3);
    intervention.prepare(batch, 0);
    const ActivationCache seen(*model, {later});
    intervention.logits(mask_of_heads(*model, head));
    double furthest = 0;
    for (std::int64_t i = 0; i < intact.size(); ++i) {
      furthest = std::max(furthest, std::abs(intact.at(i) - seen[later].at(i)));
    }
    EXPECT_EQ(furthest < 1e-6, how == How::frozen) << furthest;
  }
}

TEST(KnockoutRuns, InTheLastLayerNothingButTheResidualStreamReadsAHead) {
  const TinyTask task;
  const auto model = fresh(deep());
  const std::vector<HeadList> sets = {{}, {{2, 1}}, {{0, 1}}};
  const auto loss = [&](Path path, std::size_t set) {
    return answers_without_each(*model, task, 3, sets, {.path = path}).answers[set].loss;
  };
  for (const Path path : {Path::q, Path::k, Path::v}) {
    EXPECT_EQ(loss(path, 1), loss(path, 0)) << name_of(path);
    EXPECT_NE(loss(path, 2), loss(path, 0)) << name_of(path);
  }
  EXPECT_EQ(loss(Path::residual, 1), loss(Path::all, 1));
  EXPECT_NE(loss(Path::residual, 2), loss(Path::all, 2));
}

TEST(KnockoutRuns, ModelsThatAreNotStagedTakeWholePasses) {
  const TinyTask task;
  PlantedModel model(task.needs(), {{-1, 0}, {0, 0}});
  const std::vector<HeadList> sets = {{}, {{0, 0}}, {{0, 1}}};
  const KnockoutRuns runs = answers_without_each(model, task, 3, sets);
  EXPECT_FALSE(runs.staged);
  EXPECT_EQ(runs.run, 3);
  EXPECT_GT(runs.answers[1].loss, runs.answers[0].loss);
  EXPECT_LT(runs.answers[2].loss, runs.answers[0].loss);
}

TEST(KnockoutRuns, NameWhatIsWrong) {
  const TinyTask task;
  PlantedModel model(task.needs(), {{-1, 0}});
  const std::vector<HeadList> sets = {{{0, 0}}};
  EXPECT_EQ(error_of([&] { answers_without_each(model, task, 3, sets, {.how = How::mean}); }),
            "knock-out: layer attn does not show z, which the mean is of");
  EXPECT_EQ(error_of([&] { answers_without_each(model, task, 3, sets, {.how = How::resample}); }),
            "knock-out: the model does not show attn.z, which has to be replaced");
  EXPECT_EQ(error_of([&] { answers_without_each(model, task, 3, sets, {.path = Path::k}); }),
            "knock-out: the model does not show attn.k, which has to be replaced");
  EXPECT_EQ(
      error_of([&] { answers_without_each(model, task, 3, sets, {.how = How::frozen, .path = Path::k}); }),
      "knock-out: through k alone a head can be off as zero, mean or resample, not frozen");
  const auto real = fresh(deep());
  EXPECT_EQ(
      error_of([&] { answers_without_each(*real, task, 3, sets, {.how = How::resample, .sequences = 1}); }),
      "knock-out: resample takes z from another example, and there is 1");
}

}  // namespace
}  // namespace headlab
