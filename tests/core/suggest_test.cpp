#include "framework/core/suggest.h"

#include <gtest/gtest.h>

namespace headlab {
namespace {

const std::vector<std::string> options{"--steps", "--seeds", "--heads", "--task", "--threads", "--d-model"};

TEST(Suggest, CountsEdits) {
  EXPECT_EQ(edit_distance("", ""), 0);
  EXPECT_EQ(edit_distance("", "head"), 4);
  EXPECT_EQ(edit_distance("head", ""), 4);
  EXPECT_EQ(edit_distance("head", "head"), 0);
  EXPECT_EQ(edit_distance("head", "Head"), 0);
  EXPECT_EQ(edit_distance("head", "heads"), 1);
  EXPECT_EQ(edit_distance("heads", "head"), 1);
  EXPECT_EQ(edit_distance("head", "bead"), 1);
  EXPECT_EQ(edit_distance("head", "haed"), 1);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3);
  EXPECT_EQ(edit_distance("ca", "abc"), 3);  // 2 without the restriction
}

TEST(Suggest, FindsTheNearestName) {
  EXPECT_EQ(nearest_name("--step", options), "--steps");
  EXPECT_EQ(nearest_name("--setps", options), "--steps");
  EXPECT_EQ(nearest_name("steps", options), "--steps");
  EXPECT_EQ(nearest_name("-heads", options), "--heads");
  EXPECT_EQ(nearest_name("--thraeds", options), "--threads");
  EXPECT_EQ(nearest_name("--dmodel", options), "--d-model");
  EXPECT_EQ(nearest_name("--D_MODEL", options), "--d-model");
}

TEST(Suggest, GivesTiesToTheFirst) {
  const std::vector<std::string> names{"cat", "hat", "bat"};
  EXPECT_EQ(nearest_name("mat", names), "cat");
}

TEST(Suggest, StaysSilentWhenNothingIsNear) {
  EXPECT_EQ(nearest_name("--colour", options), std::nullopt);
  EXPECT_EQ(nearest_name("", options), std::nullopt);
  EXPECT_EQ(nearest_name("--", options), std::nullopt);
  EXPECT_EQ(nearest_name("--steps", {}), std::nullopt);
  EXPECT_EQ(nearest_name(std::string(100'000, 's'), options), std::nullopt);
  const std::vector<std::string> short_names{"a", "-x"};
  EXPECT_EQ(nearest_name("b", short_names), std::nullopt);
}

TEST(Suggest, ListsTheNearestHoweverFar) {
  const std::vector<std::string> names{"zebra", "hat", "cat", "hats", "bat"};
  EXPECT_EQ(nearest_names("hat", names, 3), (std::vector<std::string>{"hat", "cat", "hats"}));
  EXPECT_EQ(nearest_names("zzzz", names, 1), std::vector<std::string>{"zebra"});
  EXPECT_EQ(nearest_names("hat", names, 9).size(), 5U);
  EXPECT_TRUE(nearest_names(std::string(100'000, 's'), names, 3).empty());
  EXPECT_TRUE(nearest_names("hat", {}, 3).empty());
}

TEST(Suggest, EndsAMessage) {
  EXPECT_EQ(did_you_mean("--step", options), " (did you mean '--steps'?)");
  EXPECT_EQ(did_you_mean("--colour", options), "");
}

}  // namespace
}  // namespace headlab
