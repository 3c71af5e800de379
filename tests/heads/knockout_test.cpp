#include "framework/heads/knockout.h"

#include <cmath>
#include <numeric>

#include <gtest/gtest.h>

#include "framework/data/offsets.h"
#include "framework/data/prev.h"
#include "tests/heads/support.h"
#include "tests/support/errors.h"

namespace headlab {
namespace {

std::vector<PlantedHead> one_head_per_offset() {
  std::vector<PlantedHead> jobs;
  for (std::size_t r = 0; r < OffsetsTask::offsets; ++r)
    jobs.push_back({-static_cast<std::int64_t>(r) - 1, r});
  return jobs;
}

TEST(Answers, CountPairsPositionsAndSequences) {
  const OffsetsTask task;
  PlantedModel model(task.needs(), one_head_per_offset());
  const Answers all = answers(model, task, 0);
  EXPECT_EQ(all.pooled, 1);
  EXPECT_EQ(all.position, 1);
  EXPECT_EQ(all.sequence, 1);
  EXPECT_EQ(all.sequences, 512);
  EXPECT_EQ(all.positions, 512 * 8);
  EXPECT_EQ(all.pairs, 512 * 8 * 8);
  EXPECT_EQ(all.readouts, std::vector<double>(8, 1.0));
  EXPECT_EQ(all.accuracy(task.accuracy()), all.pooled);
  EXPECT_EQ(all.accuracy(Accuracy::whole_sequence), all.sequence);
  EXPECT_EQ(answers(model, task, 0, HeldOut::all, 1000).sequences, 1024);
}

TEST(Answers, AllRightAtOnePositionIsHarderThanEachByItself) {
  const OffsetsTask task;
  PlantedModel model(task.needs(), {{-1, 0}, {-2, 1}});
  const Answers some = answers(model, task, 0);
  EXPECT_EQ(some.readouts[0], 1);
  EXPECT_NEAR(some.readouts[2], 1.0 / 32, 0.02);  // the answer is always class 0
  EXPECT_NEAR(some.pooled, (2 + 6.0 / 32) / 8, 0.01);
  EXPECT_EQ(some.position, 0);
  EXPECT_EQ(some.sequence, 0);
}

TEST(Answers, LossIsTheMeanCrossEntropyOfTheScoredPairs) {
  const PrevTask task;
  PlantedModel model(task.needs(), {{-1, 0}});
  const Answers all = answers(model, task, 0);
  // One logit of 1 among 31 of 0.
  EXPECT_NEAR(all.loss, std::log(std::exp(1) + 31) - 1, 1e-12);
  ASSERT_EQ(all.sequence_losses.size(), 512U);
  ASSERT_EQ(all.sequence_right.size(), all.readouts.size());
  EXPECT_EQ(std::accumulate(all.sequence_right[0].begin(), all.sequence_right[0].end(), std::int64_t{0}),
            all.pairs);
  EXPECT_EQ(all.sequence_right, all.sequence_scored);
  EXPECT_NEAR(all.sequence_losses[7], all.loss, 1e-12);
}

TEST(Answers, AreTakenInEvaluationModeWhichIsPutBack) {
  const PrevTask task;
  PlantedModel model(task.needs(), {{-1, 0}});
  answers(model, task, 0);
  for (const bool training : model.modes) EXPECT_FALSE(training);
  EXPECT_TRUE(model.training());
  EXPECT_EQ(error_of([&] { answers(model, task, 0, HeldOut::all, 0); }),
            "answers: a batch size of 0, needs at least 1");
}

TEST(Knockout, OfTheOnlyHeadThatKnowsLosesAlmostEverything) {
  const PrevTask task;
  PlantedModel model(task.needs(), {{-1, 0}});
  const KnockoutMatrix matrix = knockout_matrix(model, task, 0);
  EXPECT_EQ(matrix.intact.pooled, 1);
  ASSERT_EQ(matrix.heads.size(), 1U);
  EXPECT_GE(matrix.heads[0].accuracy, 0.9);
}

TEST(Knockout, OfOneOfTwoEqualHeadsLosesNothingButOfBothEverything) {
  const PrevTask task;
  PlantedModel model(task.needs(), {{-1, 0}, {-1, 0}});
  const KnockoutMatrix matrix = knockout_matrix(model, task, 0);
  EXPECT_EQ(matrix.heads[0].accuracy, 0);
  EXPECT_EQ(matrix.heads[1].accuracy, 0);
  EXPECT_LE(answers_without(model, task, 0, all_heads(model)).pooled, 0.1);
}

TEST(Knockout, TellsHeadsThatMatterFromThoseThatDoNot) {
  const PrevTask task;
  PlantedModel model(task.needs(), {{-1, 0}, {0, 0}, {0, 0}});
  const KnockoutMatrix matrix = knockout_matrix(model, task, 0);
  const KnockoutLoss& useful = matrix.heads[0];
  EXPECT_GT(useful.loss, 0.5);
  ASSERT_TRUE(useful.p && useful.adjusted_p);
  EXPECT_LT(*useful.adjusted_p, 1e-6);
  EXPECT_GE(*useful.adjusted_p, *useful.p);
  EXPECT_TRUE(useful.matters);
  EXPECT_LT(matrix.heads[1].loss, 0);  // it votes for wrong tokens
}

TEST(Knockout, OfAHeadThatChangesNothingIsNotTested) {
  const PrevTask task;
  PlantedModel model(task.needs(), {{-1, 0}, {-1, 0}});
  const GateScope closed(*model.attn, Tensor::of({2}, {1.0F, 0.0F}));
  const KnockoutMatrix matrix = knockout_matrix(model, task, 0);
  EXPECT_GT(matrix.heads[0].loss, 0);
  EXPECT_EQ(matrix.heads[1].loss, 0);
  EXPECT_FALSE(matrix.heads[1].p);
  EXPECT_FALSE(matrix.heads[1].adjusted_p);
  EXPECT_FALSE(matrix.heads[1].matters);
}

TEST(Knockout, MatrixOfOneHeadPerJobIsDiagonal) {
  const OffsetsTask task;
  PlantedModel model(task.needs(), one_head_per_offset());
  const KnockoutMatrix matrix = knockout_matrix(model, task, 0, {.batch_size = 128});
  for (std::size_t head = 0; head < 8; ++head) {
    EXPECT_EQ(matrix.heads[head].head, (HeadId{0, static_cast<std::int64_t>(head)}));
    for (std::size_t readout = 0; readout < 8; ++readout) {
      if (head == readout) {
        EXPECT_GE(matrix.heads[head].readouts[readout], 0.95);
      } else {
        EXPECT_EQ(matrix.heads[head].readouts[readout], 0);
      }
    }
  }
}

// By hand: three sequences of two answers lose 2, 1 and 0 of them. Their shares 1, 0.5, 0 have the mean 0.5
// and the standard deviation 0.5, and t with two degrees of freedom is 4.302653 at 97.5 %.
TEST(KnockoutLoss, SharesHaveIntervalsOverSequences) {
  Answers intact, without;
  intact.readouts = {1};
  without.readouts = {0.5};
  intact.sequence_right = {{2, 2, 2}};
  without.sequence_right = {{0, 1, 2}};
  intact.sequence_scored = without.sequence_scored = {{2, 2, 2}};
  ASSERT_EQ(loss_between(intact, without, Accuracy::pooled).readout_intervals.size(), 1U);
  EXPECT_NEAR(*loss_between(intact, without, Accuracy::pooled).readout_intervals[0],
              4.302653 * 0.5 / std::sqrt(3), 1e-6);
  // A sequence that is not asked counts for nothing; one alone has no interval.
  intact.sequence_right = {{2, 2, 2, 0}};
  without.sequence_right = {{0, 1, 2, 0}};
  without.sequence_scored = {{2, 2, 2, 0}};
  EXPECT_NEAR(*loss_between(intact, without, Accuracy::pooled).readout_intervals[0],
              4.302653 * 0.5 / std::sqrt(3), 1e-6);
  without.sequence_scored = {{2, 0, 0, 0}};
  EXPECT_EQ(loss_between(intact, without, Accuracy::pooled).readout_intervals[0], std::nullopt);
}

TEST(Knockout, PutsGatesBackAndKeepsThoseOfOtherHeads) {
  const PrevTask task;
  PlantedModel model(task.needs(), {{-1, 0}, {-2, 0}});
  const std::vector<HeadId> first = {{0, 0}};
  {
    const Knockout knockout(model, first);
    EXPECT_EQ(model.attn->gate().value().at(0), 0);
    EXPECT_EQ(model.attn->gate().value().at(1), 1);
  }
  EXPECT_FALSE(model.attn->gate());
  const GateScope half(*model.attn, Tensor::of({2}, {1.0F, 0.5F}));
  try {
    const Knockout knockout(model, first);
    EXPECT_EQ(model.attn->gate().value().at(1), 0.5);
    const std::vector<HeadId> wrong = {{0, 1}, {0, 2}};
    const Knockout never(model, wrong);
  } catch (const Error&) {
  }
  EXPECT_EQ(model.attn->gate().value().at(0), 1);
  EXPECT_EQ(model.attn->gate().value().at(1), 0.5);
}

TEST(Knockout, NamesHeadsThatDoNotExist) {
  const PrevTask task;
  PlantedModel model(task.needs(), {{-1, 0}, {-2, 0}});
  EXPECT_EQ(error_of([&] {
              layer_of(model, {1, 0});
            }),
            "head: 1.0 has no layer 1: the model has 1 layers with heads");
  EXPECT_EQ(error_of([&] {
              layer_of(model, {0, 2});
            }),
            "head: 0.2 does not exist: layer 0 (attn) has 2 heads");
}

}  // namespace
}  // namespace headlab
