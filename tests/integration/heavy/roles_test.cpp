// How often a role is found where there is none.
#include "framework/heads/roles.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace headlab
