#include <gtest/gtest.h>

#include "framework/files/run_folder.h"
#include "framework/sweep/ablation.h"
#include "tests/support/errors.h"
#include "tests/support/temporary_folder.h"
#include "tests/sweep/support.h"

namespace headlab {
namespace {

AblationOptions grid_options(const std::filesystem::path& folder) {
  AblationOptions options = tiny_options(folder);
  options.seeds = 2;
  return options;
}

std::vector<GridValue> rates_of_a_grid() {
  std::vector<GridValue> values;
  for (const double rate : {0.01, 0.001}) {
    values.push_back({fmt::format("lr={}", rate), std::make_shared<TinyTask>(), tiny_config()});
    values.back().base.recipe.learning_rate = rate;
  }
  return values;
}

TEST(AblationGrid, RunsEveryHeadCountAtEveryValue) {
  const TemporaryFolder folder;
  const AblationGrid grid =
      run_ablation_grid(tiny_catalogue(), "lr", rates_of_a_grid(), grid_options(folder.path()));
  EXPECT_EQ(grid.total, 8);
  EXPECT_EQ(grid.done, 8);
  EXPECT_FALSE(grid.interrupted);
  ASSERT_EQ(grid.results.size(), 2u);
  // A value's runs are those of an ablation at that value, so nothing is left to do there.
  AblationOptions options = grid_options(folder.path());
  options.base = rates_of_a_grid()[1].base;
  const AblationResult alone = run_ablation(TinyTask(), tiny_catalogue(), options);
  EXPECT_EQ(alone.made, 0);
  EXPECT_EQ(numbers(alone).substr(0, 200), numbers(grid.results[1]).substr(0, 200));
  EXPECT_NE(grid.results[0].levels[0].loss.mean, grid.results[1].levels[0].loss.mean);
}

TEST(AblationGrid, PicksAmongAllValuesAndSoDoOthers) {
  const TemporaryFolder folder;
  const AblationGrid grid =
      run_ablation_grid(tiny_catalogue(), "lr", rates_of_a_grid(), grid_options(folder.path()));
  ASSERT_TRUE(grid.picked);
  const ChosenRun chosen = pick_run(folder.path());
  EXPECT_EQ(chosen.path, folder / grid.picked->record.name);
  EXPECT_NE(chosen.note.find("(" + grid.picked->record.setting + ")"), std::string::npos) << chosen.note;
  EXPECT_EQ(grid.picked->runs, 2);
  EXPECT_EQ(pick_level(folder.path()).size(), 2u);
}

TEST(AblationGrid, RefusesNoValuesAndTheSameTwice) {
  const TemporaryFolder folder;
  const AblationOptions options = grid_options(folder / "sweep");
  EXPECT_EQ(error_of([&] { run_ablation_grid(tiny_catalogue(), "lr", {}, options); }),
            "ablation: there are no values of lr to compare");
  std::vector<GridValue> values = rates_of_a_grid();
  values[1].setting = values[0].setting;
  EXPECT_EQ(error_of([&] { run_ablation_grid(tiny_catalogue(), "lr", values, options); }),
            "ablation: lr=0.01 is asked for twice");
  EXPECT_FALSE(std::filesystem::exists(folder / "sweep"));
}

TEST(AblationGrid, AdjustsOverAllComparisons) {
  std::vector<AblationResult> results(2);
  for (AblationResult& result : results) {
    result.levels.resize(2);
    for (int seed = 0; seed < 7; ++seed) {
      result.levels[0].runs.emplace_back(record_of(1, static_cast<std::uint64_t>(seed), 0.1));
      result.levels[1].runs.emplace_back(record_of(4, static_cast<std::uint64_t>(seed), 0.5 + 0.01 * seed));
    }
    result.levels[0].heads = 1;
    result.levels[1].heads = 4;
    summarise_levels(result.levels, 1);
    EXPECT_EQ(result.levels[1].difference->adjusted_p, 2.0 / 128);
  }
  adjust_together(results);
  for (const AblationResult& result : results) {
    EXPECT_EQ(result.levels[1].difference->adjusted_p, 4.0 / 128);
    EXPECT_EQ(result.levels[1].loss_difference->adjusted_p, 4.0 / 128);
    EXPECT_FALSE(result.levels[0].difference);
  }
}

}  // namespace
}  // namespace headlab
