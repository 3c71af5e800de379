#include "framework/command/inspect_roles.h"

#include <gtest/gtest.h>

namespace headlab {
namespace {

SeedRoles with(std::vector<std::string> roles) {
  SeedRoles seed;
  seed.roles = std::move(roles);
  return seed;
}

TEST(InspectRoles, ASentenceSaysWhatAllSeedsHave) {
  EXPECT_EQ(seeds_verdict({with({"previous token", "induction"}), with({"induction", "previous token"})}),
            "All 2 roles grow in every one of 2 seeds.");
  EXPECT_EQ(seeds_verdict({with({"induction"}), with({"induction", "previous token"}), with({"induction"})}),
            "Of 2 roles, 1 grows in every one of 3 seeds, the others in some.");
  EXPECT_EQ(seeds_verdict({with({"induction"}), with({"previous token"})}),
            "Of 2 roles, 0 grow in every one of 2 seeds, the others in some.");
  EXPECT_EQ(seeds_verdict({with({"induction"}), with({"induction"})}),
            "The one role there is grows in every one of 2 seeds.");
  EXPECT_EQ(seeds_verdict({with({}), with({})}), "In none of 2 seeds has a head a role.");
}

}  // namespace
}  // namespace headlab
