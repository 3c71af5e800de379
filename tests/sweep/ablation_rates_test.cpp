#include <gtest/gtest.h>

#include "framework/files/run_folder.h"
#include "framework/sweep/rates.h"
#include "tests/support/errors.h"
#include "tests/support/temporary_folder.h"
#include "tests/sweep/support.h"

namespace headlab {
namespace {

TEST(Ablation, ChoosesLearningRatesOnSeedsOfTheirOwn) {
  const TemporaryFolder folder;
  AblationOptions options = tiny_options(folder.path());
  options.rates = {1e-6, 0.01};  // five steps with the first get nowhere
  const AblationResult result = run_ablation(TinyTask(), tiny_catalogue(), options);
  EXPECT_EQ(result.made, 2 * 2 * 2 + 6);
  EXPECT_EQ(result.done, 6);
  for (const AblationLevel& level : result.levels) {
    ASSERT_TRUE(level.rate);
    EXPECT_EQ(level.rate->best, 1u);
    EXPECT_TRUE(level.rate->at_the_edge);
    EXPECT_EQ(level.config.recipe.learning_rate, 0.01);
    for (const TriedRate& tried : level.rate->tried) EXPECT_EQ(tried.loss.size(), 2u);
    for (const auto& run : level.runs) EXPECT_LT(run->seed, 3u);
  }
  for (const RunRecord& record : sweep_records(folder.path())) EXPECT_LT(record.seed, 3u);
  // More reported seeds leave the choice as it is.
  options.seeds = 4;
  EXPECT_EQ(run_ablation(TinyTask(), tiny_catalogue(), options).made, 2);
}

TEST(Ablation, StoppedWhileChoosingGoesOn) {
  const TemporaryFolder folder;
  AblationOptions options = tiny_options(folder.path());
  options.rates = {0.001, 0.01};
  std::atomic<bool> stop = true;
  options.stop = &stop;
  const AblationResult stopped = run_ablation(TinyTask(), tiny_catalogue(), options);
  EXPECT_TRUE(stopped.interrupted);
  EXPECT_TRUE(stopped.choosing);
  EXPECT_EQ(stopped.done, 0);
  stop = false;
  EXPECT_EQ(run_ablation(TinyTask(), tiny_catalogue(), options).done, 6);
}

TEST(RateChoice, TakesTheLeastLossOfRatesThatNeverFail) {
  RateChoice choice{
      .tried = {{0.1, {std::nullopt, 0.1}}, {0.03, {0.5, 0.7}}, {0.01, {0.6, 0.5}}, {0.003, {2, 2}}}};
  choose_rate(choice, 4);
  EXPECT_EQ(choice.best, 2u);
  EXPECT_FALSE(choice.at_the_edge);
  choice.tried = {{0.1, {std::nullopt}}, {0.3, {std::nullopt}}};
  EXPECT_EQ(error_of([&] { choose_rate(choice, 4); }),
            "ablation: with 4 heads training fails at every learning rate of 0.1, 0.3");
}

TEST(LearningCurve, IsTheMeanOverSeedsAtEqualSteps) {
  AblationLevel level;
  for (const double shift : {0.0, 2.0}) {
    RunRecord run = record_of(1, 0, 0.5);
    run.steps = 30;
    run.curve = {3 + shift, 2 + shift, 1 + shift};
    level.runs.emplace_back(run);
  }
  level.runs.emplace_back();
  const LearningCurve curve = learning_curve(level);
  EXPECT_EQ(curve.steps, (std::vector<std::int64_t>{10, 20, 30}));
  ASSERT_EQ(curve.loss.size(), 3u);
  EXPECT_EQ(curve.loss[1].mean, 3.0);
  // 12.7062 (t of one degree of freedom) · √2 / √2
  EXPECT_NEAR(curve.loss[1].interval->half_width(), 12.7062, 1e-4);
  EXPECT_TRUE(learning_curve({}).steps.empty());
}

}  // namespace
}  // namespace headlab
