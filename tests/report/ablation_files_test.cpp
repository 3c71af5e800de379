#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "framework/files/atomic_file.h"
#include "framework/files/json_file.h"
#include "framework/report/ablation.h"
#include "tests/report/ablation_results.h"
#include "tests/support/temporary_folder.h"

namespace headlab {
namespace {

TEST(AblationJson, HasCurvesWithIntervals) {
  const nlohmann::json curve = ablation_json(with_curves())["levels"][1]["curve"];
  EXPECT_EQ(curve["steps"], nlohmann::json({75, 150, 225, 300, 375, 450, 525, 600}));
  EXPECT_NEAR(curve["mean"][1].get<double>(), 3.505, 1e-12);
  EXPECT_NEAR(curve["ci95"][1][1].get<double>(), 3.505 + 12.7062 * 0.005, 1e-6);
}

TEST(AblationGridJson, HasLevelsAndRunsOfAllValues) {
  const AblationGrid grid = grid_of_rates();
  const nlohmann::json json = ablation_json(grid);
  EXPECT_EQ(json["grid"], nlohmann::json({{"option", "lr"}, {"settings", {"lr=0.01", "lr=0.003"}}}));
  ASSERT_EQ(json["levels"].size(), 4u);
  EXPECT_EQ(json["levels"][3]["setting"], "lr=0.003");
  EXPECT_EQ(json["levels"][3]["heads"], 4);
  EXPECT_EQ(json["runs"].size(), 12u);
  EXPECT_EQ(json["findings"][1]["finding"], finding(grid.results[1]));
  EXPECT_EQ(json["finding"], finding(grid));
  EXPECT_NE(ablation_csv(grid).find("4,lr=0.003,2,0.5,"), std::string::npos) << ablation_csv(grid);
}

TEST(AblationJson, HasTheDocumentedFields) {
  const nlohmann::json json = ablation_json(whole_ladder());
  EXPECT_EQ(json["version"], 1);
  EXPECT_EQ(json["task"], "offsets");
  EXPECT_EQ(json["factor"], "heads");
  EXPECT_EQ(json["options"]["heads"], nlohmann::json({1, 4, 8, 16}));
  EXPECT_EQ(json["options"]["config"]["recipe"]["steps"], 600);
  ASSERT_EQ(json["levels"].size(), 4u);
  const nlohmann::json& four = json["levels"][1];
  EXPECT_EQ(four["heads"], 4);
  EXPECT_EQ(four["n"], 5);
  EXPECT_NEAR(four["accuracy"]["mean"].get<double>(), .8188, 1e-12);
  EXPECT_NEAR(four["accuracy"]["ci95"][0].get<double>(), .693, 5e-4);
  EXPECT_NEAR(four["accuracy"]["ci95"][1].get<double>(), .9445, 5e-4);
  EXPECT_NEAR(four["loss"]["mean"].get<double>(), .1812, 1e-12);
  EXPECT_NEAR(four["difference"]["mean"].get<double>(), .6102, 1e-12);
  EXPECT_EQ(four["difference"]["n"], 5);
  EXPECT_TRUE(four["difference"]["p"].is_null());
  EXPECT_EQ(four["parameters"], 36352);
  EXPECT_EQ(four["d_head"], 16);
  EXPECT_EQ(four["d_model"], 64);
  EXPECT_EQ(four["low_rank"], false);
  EXPECT_EQ(json["levels"][2]["low_rank"], true);
  EXPECT_EQ(four["learning_rate"], 0.01);
  EXPECT_TRUE(four["learning_rate_choice"].is_null());
  EXPECT_EQ(four["difference"]["verdict"], "too few seeds");
  EXPECT_NEAR(four["blended"]["mean"].get<double>(), 1.9, 1e-12);
  EXPECT_EQ(json["hold"], "d_model");
  EXPECT_TRUE(json["grid"].is_null());
  EXPECT_EQ(json["published"]["levels"][3]["bleu"], 25.8);
  EXPECT_EQ(four["seconds"], 9.5);
  EXPECT_EQ(four["prototype"], .819);
  EXPECT_TRUE(json["levels"][0]["difference"].is_null());
  EXPECT_EQ(json["runs"].size(), 20u);
  EXPECT_EQ(json["runs"][5]["name"], "h4-s0-00000000");
  EXPECT_EQ(json["runs"][10]["figures"]["cover"], 2);
  EXPECT_EQ(json["picked"], "h8-s2-00000000");
  EXPECT_EQ(json["knockout"]["drop"][0][1], .98);
  EXPECT_EQ(json["knockout"]["heads"][1], "0.1");
}

TEST(AblationCsv, HasARecordPerRun) {
  AblationResult result = ablation_of({{1, {.25, .5}}, {4, {.75, -1}}});
  result.levels[0].runs[1]->figures = HeadFigures{.5, .25, 1, 1, 1, 2, 3};
  EXPECT_EQ(
      ablation_csv(result),
      "heads,setting,seed,accuracy,loss,train_loss,steps,parameters,d_model,d_head,low_rank,learning_rate,"
      "seconds,confidence,normalised_entropy,clean_heads,cover,distinct_offsets,blended,run,failure\r\n"
      "1,,0,0.25,0.75,0,600,36352,64,64,0,0.01,9.5,,,,,,,h1-s0-00000000,\r\n"
      "1,,1,0.5,0.5,0,600,36352,64,64,0,0.01,9.5,0.5,0.25,1,1,3,,h1-s1-00000000,\r\n"
      "4,,0,0.75,0.25,0,600,36352,64,16,0,0.01,9.5,,,,,,,h4-s0-00000000,\r\n"
      "4,,1,,,,,,,,,,,,,,,,,h4-s1-00000000,train: the loss of step 7 is nan; stopped before the update\r\n");
}

TEST(AblationFiles, AreWrittenToTheSweepsFolder) {
  const TemporaryFolder folder;
  AblationResult result = whole_ladder();
  result.folder = folder.path();
  write_ablation(result, {"headlab ablate", "1.2.3"});
  nlohmann::json expected = ablation_json(result);
  expected["made_by"] = {{"command", "headlab ablate"}, {"version", "1.2.3"}};
  EXPECT_EQ(read_json(folder / "results.json"), expected);
  EXPECT_EQ(read_file(folder / "results.csv"), ablation_csv(result));
}

}  // namespace
}  // namespace headlab
