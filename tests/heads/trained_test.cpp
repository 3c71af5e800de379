// What the laboratory says of models that were really trained.
#include <gtest/gtest.h>

#include "framework/data/prev.h"
#include "framework/heads/analyse.h"
#include "framework/heads/knockout.h"
#include "framework/train/trainer.h"
#include "models/build.h"

namespace headlab {
namespace {

std::unique_ptr<Model> trained(const Task& task, std::int64_t heads) {
  RunConfig config{.task = task.name(), .needs = task.needs(), .recipe = task.recipe(), .seed = 0};
  config.needs.heads = heads;
  std::unique_ptr<Model> model = build_model(config.needs);
  train(*model, task, config);
  return model;
}

TEST(TrainedHeads, TheOnlyHeadOfPrevLooksOneBackAndIsIndispensable) {
  const PrevTask task;
  const std::unique_ptr<Model> model = trained(task, 1);
  const HeadAnalysis a = analyse_heads(*model, task, 0);
  EXPECT_EQ(a.heads[0].layer, "blocks.0.attn");
  EXPECT_EQ(a.heads[0].clean, 0U);
  EXPECT_EQ(a.heads[0].best_offset, -1);
  EXPECT_TRUE(a.heads[0].positional);
  EXPECT_LT(a.normalised_entropy, 0.2);
  const KnockoutMatrix matrix = knockout_matrix(*model, task, 0);
  EXPECT_GE(matrix.intact.pooled, 0.99);
  EXPECT_GE(matrix.heads[0].accuracy, 0.9);
  EXPECT_TRUE(matrix.heads[0].matters);
  // The gate is open again.
  EXPECT_EQ(answers(*model, task, 0).pooled, matrix.intact.pooled);
}

TEST(TrainedHeads, FourHeadsOfPrevHoldTheSameJobRedundantly) {
  const PrevTask task;
  const std::unique_ptr<Model> model = trained(task, 4);
  const HeadAnalysis a = analyse_heads(*model, task, 0);
  EXPECT_EQ(a.cover, 1);
  EXPECT_GE(a.targets[0].clean_heads, 2);
  EXPECT_GE(a.layers[0].redundancy, 2);
  const KnockoutMatrix matrix = knockout_matrix(*model, task, 0);
  for (const KnockoutLoss& head : matrix.heads) EXPECT_LE(head.accuracy, 0.05);
  const std::vector<HeadId> all = all_heads(*model);
  EXPECT_LE(answers_without(*model, task, 0, all).pooled, 0.1);
}

}  // namespace
}  // namespace headlab
