#include "framework/report/ablation.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "framework/files/atomic_file.h"
#include "framework/files/json_file.h"
#include "tests/report/ablation_results.h"
#include "tests/support/temporary_folder.h"

namespace headlab {
namespace {

AblationResult whole_ladder() {
  AblationResult result = ladder_of_offsets();
  for (AblationLevel& level : result.levels) {
    for (auto& run : level.runs)
      run->figures = HeadFigures{.92, .11, level.heads, level.heads == 8 ? 8 : 0, 2, 2, 8};
    if (level.heads <= 8) level.prototype = level.heads == 1 ? .209 : level.heads == 4 ? .819 : 1;
  }
  summarise_levels(result.levels, 1);
  result.picked = PickedRun{*result.levels[2].runs[2], 5};
  KnockoutMatrix matrix;
  matrix.answers = {"t-1", "t-2"};
  const auto lost = [](std::int64_t head, double first, double second) {
    KnockoutLoss loss;
    loss.head = {0, head};
    loss.readouts = {first, second};
    return loss;
  };
  matrix.heads = {lost(0, 0, .98), lost(1, .01, -.01), lost(2, .97, 0)};
  result.knockout = matrix;
  return result;
}

TEST(AblationText, ShowsFiguresHeadsKnockoutAndFinding) {
  EXPECT_EQ(ablation_text(whole_ladder()),
            R"(Head counts on offsets: 5 seeds, 600 steps
──────────────────────────────────────────────────────────────────────────────────────────────────────
 heads   n        accuracy         over h=1            loss   prototype   parameters   d_head    time
──────────────────────────────────────────────────────────────────────────────────────────────────────
     1   5   0.209 ± 0.004        –           0.791 ± 0.004       0.209       36 352       64   9.5 s
     4   5   0.819 ± 0.126   +0.610 ± 0.128   0.181 ± 0.126       0.819       36 352       16   9.5 s
     8   5   1.000 ± 0.000   +0.791 ± 0.004   0.000 ± 0.000       1.000       36 352        8   9.5 s
    16   5   1.000 ± 0.000   +0.791 ± 0.004   0.000 ± 0.000           –       36 352        4   9.5 s
──────────────────────────────────────────────────────────────────────────────────────────────────────
± is the 95 % t interval over seeds; differences are paired by seed.
An exact test of the differences needs 7 seeds.
prototype: mean accuracy of a prototype in PyTorch with the task's own settings.

What the heads became
──────────────────────────────────────────────────────────────────────────────────────────────
 heads    confidence       entropy   clean heads   cover of 2                accuracy by seed
──────────────────────────────────────────────────────────────────────────────────────────────
     1   0.92 ± 0.00   0.11 ± 0.00     0 0 0 0 0    2 2 2 2 2   0.208 0.203 0.211 0.211 0.210
     4   0.92 ± 0.00   0.11 ± 0.00     0 0 0 0 0    2 2 2 2 2   0.885 0.866 0.840 0.640 0.863
     8   0.92 ± 0.00   0.11 ± 0.00     8 8 8 8 8    2 2 2 2 2   1.000 1.000 1.000 1.000 1.000
    16   0.92 ± 0.00   0.11 ± 0.00     0 0 0 0 0    2 2 2 2 2   1.000 1.000 1.000 1.000 1.000
──────────────────────────────────────────────────────────────────────────────────────────────
confidence: the largest weight of a query; entropy: 0 looks at one key, 1 at all alike.
clean, seed by seed: over 0.8 of a head's weight on one of the task's 2 targets.
cover: targets that have a clean head.

Accuracy lost without one head (layer.head), by read-out
       t-1   t-2
0.2   0.97  0.00
0.0   0.00  0.98
0.1   0.01 -0.01
Of h8-s2-00000000: the median of 5 seeds by accuracy, at the fewest heads within 0.01 of the best
mean.

Accuracy after 600 steps: h=1 0.209, h=4 0.819, h=8 1.000, h=16 1.000. So accuracy rises by 0.791
[0.787, 0.796] from h=1 to h=8 (paired, 95 % interval, n=5), no further at h=16.
)");
}

TEST(AblationText, IsCutInTwoOnANarrowTerminal) {
  EXPECT_EQ(ablation_text(ladder_of_offsets(), {.unicode = false, .interactive = true, .width = 80}),
            "Head counts on offsets: 5 seeds, 600 steps\n"
            "------------------------------------------------------------------\n"
            " heads   n          accuracy           over h=1              loss\n"
            "------------------------------------------------------------------\n"
            "     1   5   0.209 +/- 0.004        -             0.791 +/- 0.004\n"
            "     4   5   0.819 +/- 0.126   +0.610 +/- 0.128   0.181 +/- 0.126\n"
            "     8   5   1.000 +/- 0.000   +0.791 +/- 0.004   0.000 +/- 0.000\n"
            "    16   5   1.000 +/- 0.000   +0.791 +/- 0.004   0.000 +/- 0.000\n"
            "------------------------------------------------------------------\n"
            "+/- is the 95 % t interval over seeds; differences are paired by seed.\n"
            "An exact test of the differences needs 7 seeds.\n"
            "\n"
            "-------------------------------------\n"
            " heads   parameters   d_head    time\n"
            "-------------------------------------\n"
            "     1       36 352       64   9.5 s\n"
            "     4       36 352       16   9.5 s\n"
            "     8       36 352        8   9.5 s\n"
            "    16       36 352        4   9.5 s\n"
            "-------------------------------------\n"
            "\n"
            "Accuracy after 600 steps: h=1 0.209, h=4 0.819, h=8 1.000, h=16 1.000. So\n"
            "accuracy rises by 0.791 [0.787, 0.796] from h=1 to h=8 (paired, 95 % interval,\n"
            "n=5), no further at h=16.\n");
}

TEST(AblationText, ListsFailedRunsAndSaysHowToGoOn) {
  AblationResult result = ablation_of({{1, {.2, .21, .22}}, {4, {.8, -1, .82}}});
  result.levels[1].runs[2].reset();
  summarise_levels(result.levels, 1);
  result.interrupted = true;
  result.done = 5;
  const std::string text = ablation_text(result);
  EXPECT_NE(text.find("Failed, and left out: h4-s1-00000000: train: the loss of step 7 is nan; stopped "
                      "before the update\n"
                      "Stopped with 5 of 6 runs done, kept in sweeps/offsets; the same command continues.\n"),
            std::string::npos)
      << text;
}

TEST(AblationText, ShowsTheTestFromSevenSeedsOn) {
  const std::string text =
      ablation_text(ablation_of({{1, {.2, .2, .2, .2, .2, .2, .2}}, {4, {.8, .81, .8, .8, .8, .8, .8}}}));
  EXPECT_NE(text.find("test"), std::string::npos) << text;
  EXPECT_NE(text.find("p = 0.016"), std::string::npos) << text;
  EXPECT_EQ(text.find("needs 7 seeds"), std::string::npos) << text;
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
  EXPECT_EQ(four["seconds"], 9.5);
  EXPECT_EQ(four["prototype"], .819);
  EXPECT_TRUE(json["levels"][0]["difference"].is_null());
  EXPECT_EQ(json["runs"].size(), 20u);
  EXPECT_EQ(json["runs"][5]["name"], "h4-s0-00000000");
  EXPECT_EQ(json["runs"][5]["figures"]["cover"], 2);
  EXPECT_EQ(json["picked"], "h8-s2-00000000");
  EXPECT_EQ(json["knockout"]["drop"][0][1], .98);
  EXPECT_EQ(json["knockout"]["heads"][1], "0.1");
}

TEST(AblationCsv, HasARecordPerRun) {
  AblationResult result = ablation_of({{1, {.25, .5}}, {4, {.75, -1}}});
  result.levels[0].runs[1]->figures = HeadFigures{.5, .25, 1, 1, 1, 2, 3};
  EXPECT_EQ(
      ablation_csv(result),
      "heads,seed,accuracy,loss,train_loss,steps,parameters,d_head,seconds,confidence,normalised_entropy,"
      "clean_heads,cover,distinct_offsets,run,failure\r\n"
      "1,0,0.25,0.75,0,600,36352,64,9.5,,,,,,h1-s0-00000000,\r\n"
      "1,1,0.5,0.5,0,600,36352,64,9.5,0.5,0.25,1,1,3,h1-s1-00000000,\r\n"
      "4,0,0.75,0.25,0,600,36352,16,9.5,,,,,,h4-s0-00000000,\r\n"
      "4,1,,,,,,,,,,,,,h4-s1-00000000,train: the loss of step 7 is nan; stopped before the update\r\n");
}

TEST(AblationFiles, AreWrittenToTheSweepsFolder) {
  const TemporaryFolder folder;
  AblationResult result = whole_ladder();
  result.folder = folder.path();
  write_ablation(result);
  EXPECT_EQ(read_json(folder / "results.json"), ablation_json(result));
  EXPECT_EQ(read_file(folder / "results.csv"), ablation_csv(result));
}

}  // namespace
}  // namespace headlab
