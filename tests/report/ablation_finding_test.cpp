#include <gtest/gtest.h>

#include "framework/report/ablation.h"
#include "tests/report/ablation_results.h"

namespace headlab {
namespace {

std::string found(const std::vector<LevelValues>& levels, std::int64_t reference = 1) {
  return finding(ablation_of(levels, reference));
}

TEST(Finding, ARiseThatEnds) {
  EXPECT_EQ(
      finding(ladder_of_offsets()),
      "Accuracy after 600 steps: h=1 0.209, h=4 0.819, h=8 1.000, h=16 1.000. So accuracy rises by 0.791 "
      "[0.787, 0.796] from h=1 to h=8 (paired, 95 % interval, n=5), no further at h=16.");
}

TEST(Finding, ARiseUpToTheLastLevel) {
  EXPECT_EQ(
      found({{1, {.2, .21, .22}}, {4, {.8, .81, .82}}}),
      "Accuracy after 600 steps: h=1 0.210, h=4 0.810. So accuracy rises by 0.600 [0.600, 0.600] from h=1 to "
      "h=4 (paired, 95 % interval, n=3).");
}

TEST(Finding, ARiseAndAFall) {
  EXPECT_EQ(
      found({{1, {.2, .21, .22}}, {4, {.8, .81, .82}}, {16, {.41, .40, .42}}}),
      "Accuracy after 600 steps: h=1 0.210, h=4 0.810, h=16 0.410. So accuracy rises by 0.600 [0.600, 0.600] "
      "from h=1 to h=4 (paired, 95 % interval, n=3), and falls again to 0.410 at h=16.");
}

TEST(Finding, ARiseAndALevelThatMayBeWorse) {
  EXPECT_EQ(
      found({{1, {.2, .21, .22}}, {4, {.8, .81, .82}}, {8, {.8, .81, .82}}, {16, {.9, .40, .8}}}),
      "Accuracy after 600 steps: h=1 0.210, h=4 0.810, h=8 0.810, h=16 0.700. So accuracy rises by 0.600 "
      "[0.600, 0.600] from h=1 to h=4 (paired, 95 % interval, n=3), no further at h=8, with less on average, "
      "but no certain fall, at h=16.");
}

TEST(Finding, NoDifference) {
  EXPECT_EQ(
      found({{1, {1, 1, 1}}, {4, {1, 1, 1}}, {8, {1, .999, 1}}}),
      "Accuracy after 600 steps: h=1 1.000, h=4 1.000, h=8 1.000. Head count makes no difference here.");
}

TEST(Finding, ADifferenceTooSmallToMatterIsNone) {
  EXPECT_EQ(
      found({{1, {.990, .991, .992}}, {4, {.994, .995, .996}}}),
      "Accuracy after 600 steps: h=1 0.991, h=4 0.995. Head count makes no difference here (at most 0.004).");
}

TEST(Finding, NothingForCertain) {
  EXPECT_EQ(found({{1, {.5, .9, .5}}, {4, {.9, .5, .7}}}),
            "Accuracy after 600 steps: h=1 0.633, h=4 0.700. No head count differs from h=1 for certain: "
            "every 95 % "
            "interval of the paired differences includes 0; more seeds would tell.");
}

TEST(Finding, MoreHeadsAreWorse) {
  EXPECT_EQ(
      found({{1, {.99, .98, .99}}, {8, {.93, .93, .92}}, {16, {.68, .70, .69}}}),
      "Accuracy after 600 steps: h=1 0.987, h=8 0.927, h=16 0.690. Here accuracy falls by 0.297 [0.259, "
      "0.335] from h=1 to h=16 (paired, 95 % interval, n=3).");
}

TEST(Finding, OneSeedShowsNothing) {
  EXPECT_EQ(
      found({{1, {.2}}, {8, {1}}}),
      "Accuracy after 600 steps: h=1 0.200, h=8 1.000. A difference needs two shared seeds at least: nothing "
      "can be said about head counts.");
}

TEST(Finding, OneLevelHasNothingToCompareWith) {
  EXPECT_EQ(
      found({{1, {.2, .2}}}),
      "Accuracy after 600 steps is 0.200 ± 0.000 at h=1; there is no other head count to compare with.");
}

TEST(Finding, NothingIsDone) {
  EXPECT_EQ(found({{1, {-1}}, {4, {-1}}}), "No run has finished, so there is nothing to say yet.");
}

TEST(Finding, AnotherReference) {
  EXPECT_EQ(
      found({{8, {1, 1, 1}}, {1, {.2, .21, .22}}}, 8),
      "Accuracy after 600 steps: h=1 0.210, h=8 1.000. Here accuracy falls by 0.790 [0.765, 0.815] from h=8 "
      "to h=1 (paired, 95 % interval, n=3).");
}

TEST(Finding, AFailedRunDropsItsPair) {
  EXPECT_EQ(
      found({{1, {.2, .21, .22, .23}}, {4, {.8, -1, .82, .83}}}),
      "Accuracy after 600 steps: h=1 0.215, h=4 0.817. So accuracy rises by 0.600 [0.600, 0.600] from h=1 to "
      "h=4 (paired, 95 % interval, n=3).");
}

TEST(Finding, WithSevenSeedsTheTestDecidesToo) {
  // The interval leaves 0 out, but the adjusted p over three comparisons does not reach 0.05.
  const std::vector<double> low = {.5, .5, .5, .5, .5, .5, .5};
  const std::vector<double> high = {.59, .60, .61, .62, .58, .595, .499};
  EXPECT_EQ(
      found({{1, low}, {2, low}, {4, high}, {8, low}}),
      "Accuracy after 600 steps: h=1 0.500, h=2 0.500, h=4 0.585, h=8 0.500. No head count differs from h=1 "
      "for certain: with the correction for 3 comparisons no test reaches 0.05; more seeds would tell.");
}

AblationResult with_jobs(std::int64_t targets,
                         const std::vector<std::pair<std::int64_t, std::vector<int>>>& covers) {
  std::vector<LevelValues> values;
  for (const auto& [heads, cover] : covers) values.push_back({heads, std::vector<double>(cover.size(), .5)});
  AblationResult result = ablation_of(values);
  result.targets.assign(static_cast<std::size_t>(targets), {"t", AttentionSite::self, 0});
  for (std::size_t level = 0; level < covers.size(); ++level) {
    for (std::size_t seed = 0; seed < covers[level].second.size(); ++seed) {
      HeadFigures figures;
      figures.cover = covers[level].second[seed];
      figures.blended = 8.0 / static_cast<double>(covers[level].first);
      result.levels[level].runs[seed]->figures = figures;
    }
  }
  summarise_levels(result.levels, 1);
  return result;
}

TEST(Jobs, OfEveryLevelInASentence) {
  EXPECT_EQ(
      jobs_of_heads(
          with_jobs(8, {{1, {0, 0, 0}}, {4, {0, 2, 1}}, {6, {4, 8, 8}}, {8, {8, 8, 8}}, {16, {8, 7, 7}}})),
      "With h=1, no seed has a clean head; a head blends 8.0 targets on average. With h=4, clean heads cover "
      "0 to 2 of 8 targets; a head blends 2.0 targets on average. With h=6, 2 of 3 seeds grow a clean head "
      "for "
      "each of the 8 targets (the others for 4 of them at least). With h=8, every one of 3 seeds grows a "
      "clean head for each of the 8 targets. With h=16, 1 of 3 seeds grows a clean head for each of the 8 "
      "targets "
      "(the others for 7 of them at least).");
}

TEST(Jobs, OfOneTargetOrNone) {
  EXPECT_EQ(jobs_of_heads(with_jobs(1, {{1, {1}}, {4, {0}}})),
            "With h=1, the seed grows a clean head for the target. With h=4, no seed has a clean head.");
  EXPECT_EQ(jobs_of_heads(with_jobs(0, {{1, {0}}})), "");
}

}  // namespace
}  // namespace headlab
