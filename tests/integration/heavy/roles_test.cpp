// How often a role is found where there is none.
#include "framework/heads/roles.h"

#include <set>

#include <gtest/gtest.h>

#include "framework/data/roles.h"
#include "framework/train/trainer.h"
#include "models/build.h"
#include "tests/heads/planted.h"

namespace headlab {
namespace {

TEST(Roles, OfAThousandRandomHeadsAtMostFiveHaveOne) {
  const PlantTask task;
  Needs needs = task.needs();
  needs.heads = 25;
  needs.head_size = 6;
  const UntrainedHeads null = untrained_heads(build_model, needs, task, 7);
  std::int64_t heads = 0;
  std::int64_t roles = 0;
  for (std::uint64_t seed = 100; heads < 1000; ++seed) {
    const std::unique_ptr<Model> model = build_model(needs);
    initialise(*model, seed);
    const RoleAnalysis a = analyse_roles(*model, task, 3, analyse_heads(*model, task, 3), null);
    heads += std::ssize(a.heads);
    for (const HeadRoles& head : a.heads) roles += std::ssize(head.held());
  }
  EXPECT_EQ(heads, 1000);
  EXPECT_LE(roles, 5);
}

TEST(Roles, OfATrainedModelAreTheFourOfItsTask) {
  const RolesTask task;
  RunConfig config{.task = task.name(), .needs = task.needs(), .recipe = task.recipe(), .seed = 0};
  const std::unique_ptr<Model> model = build_model(config.needs);
  train(*model, task, config);
  const UntrainedHeads null = untrained_heads(build_model, config.needs, task, 0);
  const RoleAnalysis a = analyse_roles(*model, task, 0, analyse_heads(*model, task, 0), null);
  std::set<std::string> names;
  for (const HeadRoles& head : a.heads) {
    ASSERT_TRUE(head.main);
    names.insert(head.scores[*head.main].name);
    EXPECT_GT(head.specialisation, 0.8);
  }
  EXPECT_EQ(names, (std::set<std::string>{"first token (sink)", "looks up succ", "even attention",
                                          "previous token"}));
}

}  // namespace
}  // namespace headlab
