#include "framework/report/ablation.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/report/ablation_results.h"

namespace headlab {
namespace {

TEST(AblationText, ShowsFiguresHeadsKnockoutAndFinding) {
  EXPECT_EQ(ablation_text(whole_ladder()),
            R"(Head counts on offsets: 5 seeds, 600 steps, d_model 64 held
───────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
 heads   n        accuracy         over h=1            loss   prototype   parameters   d_model   d_head   rank    time
───────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
     1   5   0.209 ± 0.004        –           0.791 ± 0.004       0.209       36 352        64       64      –   9.5 s
     4   5   0.819 ± 0.126   +0.610 ± 0.128   0.181 ± 0.126       0.819       36 352        64       16      –   9.5 s
     8   5   1.000 ± 0.000   +0.791 ± 0.004   0.000 ± 0.000       1.000       36 352        64        8    low   9.5 s
    16   5   1.000 ± 0.000   +0.791 ± 0.004   0.000 ± 0.000           –       36 352        64        4    low   9.5 s
───────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
± is the 95 % t interval over seeds; differences are paired by seed.
An exact test of the differences needs 7 seeds.
prototype: mean accuracy of a prototype in PyTorch with the task's own settings.
rank low: d_head < context 16: such heads cannot form every pattern.

What the heads became
──────────────────────────────────────────────────────────────────────────────────────────────
 heads    confidence       entropy   clean heads   cover of 2                accuracy by seed
──────────────────────────────────────────────────────────────────────────────────────────────
     1   0.92 ± 0.00   0.11 ± 0.00     0 0 0 0 0    0 0 0 0 0   0.208 0.203 0.211 0.211 0.210
     4   0.92 ± 0.00   0.11 ± 0.00     0 0 0 0 0    0 0 0 0 0   0.885 0.866 0.840 0.640 0.863
     8   0.92 ± 0.00   0.11 ± 0.00     8 8 8 8 8    2 2 2 2 2   1.000 1.000 1.000 1.000 1.000
    16   0.92 ± 0.00   0.11 ± 0.00     0 0 0 0 0    0 0 0 0 0   1.000 1.000 1.000 1.000 1.000
──────────────────────────────────────────────────────────────────────────────────────────────
confidence: the largest weight of a query; entropy: 0 looks at one key, 1 at all alike.
clean, seed by seed: over 0.8 of a head's weight on one of the task's 2 targets.
cover: targets that have a clean head.

Beside the head counts of a translation model
───────────────────────────────────────────────────────────────────────
 heads   BLEU   over h=1   perplexity   accuracy here         over h=1
───────────────────────────────────────────────────────────────────────
     1   24.9          –         5.29           0.209        –
     4   25.5       +0.6         5.00           0.819   +0.610 ± 0.128
     8   25.8       +0.9         4.92           1.000   +0.791 ± 0.004
    16   25.8       +0.9         4.91           1.000   +0.791 ± 0.004
    32   25.4       +0.5         5.01               –        –
───────────────────────────────────────────────────────────────────────
Vaswani et al. 2017, Attention Is All You Need, Table 3 (A): d_model 512 held.
Compare the shape alone: the tasks and the measures are different.

Accuracy lost without one head (layer.head), by read-out
       t-1   t-2
0.2   0.97  0.00
0.0   0.00  0.98
0.1   0.01 -0.01
Of h8-s2-00000000: the median of 5 seeds by accuracy, at the fewest heads within 0.01 of the best
mean.

With h=1, no seed has a clean head; a head blends 1.9 targets on average. With h=4, no seed has a
clean head; a head blends 1.9 targets on average. With h=8, every one of 5 seeds grows a clean head
for each of the 2 targets. With h=16, no seed has a clean head; a head blends 1.9 targets on
average.

Accuracy after 600 steps: h=1 0.209, h=4 0.819, h=8 1.000, h=16 1.000. So accuracy rises by 0.791
[0.787, 0.796] from h=1 to h=8 (paired, 95 % interval, n=5), no further at h=16.
)");
}

TEST(AblationText, IsCutInTwoOnANarrowTerminal) {
  EXPECT_EQ(ablation_text(ladder_of_offsets(), {.unicode = false, .interactive = true, .width = 80}),
            "Head counts on offsets: 5 seeds, 600 steps, d_model 64 held\n"
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
            "rank low: d_head < context 16: such heads cannot form every pattern.\n"
            "\n"
            "------------------------------------------------------\n"
            " heads   parameters   d_model   d_head   rank    time\n"
            "------------------------------------------------------\n"
            "     1       36 352        64       64      -   9.5 s\n"
            "     4       36 352        64       16      -   9.5 s\n"
            "     8       36 352        64        8    low   9.5 s\n"
            "    16       36 352        64        4    low   9.5 s\n"
            "------------------------------------------------------\n"
            "\n"
            "Beside the head counts of a translation model\n"
            "-------------------------------------------------------------------------\n"
            " heads   BLEU   over h=1   perplexity   accuracy here           over h=1\n"
            "-------------------------------------------------------------------------\n"
            "     1   24.9          -         5.29           0.209        -\n"
            "     4   25.5       +0.6         5.00           0.819   +0.610 +/- 0.128\n"
            "     8   25.8       +0.9         4.92           1.000   +0.791 +/- 0.004\n"
            "    16   25.8       +0.9         4.91           1.000   +0.791 +/- 0.004\n"
            "    32   25.4       +0.5         5.01               -        -\n"
            "-------------------------------------------------------------------------\n"
            "Vaswani et al. 2017, Attention Is All You Need, Table 3 (A): d_model 512 held.\n"
            "Compare the shape alone: the tasks and the measures are different.\n"
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

TEST(AblationText, ShowsLearningCurvesOnOneScale) {
  const std::string text = ablation_text(with_curves());
  const std::size_t from = text.find("How they learned"), to = text.find("Beside");
  ASSERT_NE(from, std::string::npos) << text;
  EXPECT_EQ(text.substr(from, to - from), R"(How they learned
───────────────────────────────────────────────────────────────────────────────
 heads   training loss    to step 75   to step 150   to step 300   to step 600
───────────────────────────────────────────────────────────────────────────────
     1   █▇▆▅▄▃▂▁        8.00 ± 0.06   7.00 ± 0.06   5.00 ± 0.06   1.00 ± 0.06
     4   ▄▄▃▃▂▂▁▁        4.00 ± 0.06   3.50 ± 0.06   2.50 ± 0.06   0.51 ± 0.06
───────────────────────────────────────────────────────────────────────────────
Training loss of each of 8 equal pieces; one scale for all, 0.51 to 8.00.

)");
}

TEST(AblationText, SaysWhatIsHeldAndHowRatesWereChosen) {
  AblationResult result = ablation_of({{1, {.2, .21}}, {4, {.8, .82}}});
  result.hold = Hold::d_head;
  result.base.needs.head_size = 8;
  for (AblationLevel& level : result.levels) {
    level.rate = RateChoice{{{0.01, {0.5, 0.4}}, {0.03, {0.3, std::nullopt}}}, 0, true};
  }
  const std::string text = ablation_text(result);
  EXPECT_NE(text.find("2 seeds, 600 steps, d_head 8 held\n"), std::string::npos) << text;
  EXPECT_NE(text.find("lr: chosen for each head count among 0.01, 0.03 by the loss on seeds 1000 and 1001,\n"
                      "which are not reported.\n"
                      "One beyond the ends of that list may suit better: h=1, h=4.\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("Accuracy after 600 steps (d_head 8 held): "), std::string::npos) << text;
  EXPECT_EQ(text.find("BLEU"), std::string::npos) << text;  // there d_model was held
  const nlohmann::json choice = ablation_json(result)["levels"][0]["learning_rate_choice"];
  EXPECT_EQ(choice["seeds"], nlohmann::json({1000, 1001}));
  EXPECT_EQ(choice["tried"][1]["loss"], nlohmann::json({0.3, nullptr}));
}

TEST(AblationGridText, HasATableOfHeadsAndValuesAndOneOfDifferences) {
  EXPECT_EQ(ablation_text(grid_of_rates()), R"(Accuracy on offsets by head count and lr: 3 seeds
───────────────────────────────────────
 heads         lr=0.01        lr=0.003
───────────────────────────────────────
     1   0.210 ± 0.025   0.400 ± 0.248
     4   0.810 ± 0.025   0.467 ± 0.625
───────────────────────────────────────
± is the 95 % t interval over seeds.

Head counts at each lr, d_model 64 held
────────────────────────────────────────────────────────────────────────────────────
    lr   heads   n        accuracy         over h=1   parameters   d_model   d_head
────────────────────────────────────────────────────────────────────────────────────
  0.01       1   3   0.210 ± 0.025        –               36 352        64       64
  0.01       4   3   0.810 ± 0.025   +0.600 ± 0.000       36 352        64       16
────────────────────────────────────────────────────────────────────────────────────
 0.003       1   3   0.400 ± 0.248        –               36 352        64       64
 0.003       4   3   0.467 ± 0.625   +0.067 ± 0.872       36 352        64       16
────────────────────────────────────────────────────────────────────────────────────
Differences are within one value, paired by seed, with 95 % t intervals.
An exact test of the differences needs 7 seeds.

lr=0.01: Accuracy after 600 steps: h=1 0.210, h=4 0.810. So accuracy rises by 0.600 [0.600, 0.600]
from h=1 to h=4 (paired, 95 % interval, n=3).
lr=0.003: Accuracy after 600 steps: h=1 0.400, h=4 0.467. No head count differs from h=1 for
certain: every 95 % interval of the paired differences includes 0; more seeds would tell.

Of 2 comparisons with h=1, over all values of lr, accuracy is higher for certain in 1, lower in 0,
and undecided in 1. The highest mean accuracy is 0.810 ± 0.025 at h=4 with lr=0.01 (n=3).
)");
}

TEST(AblationGridText, LeavesTheWideTableOutOnANarrowTerminal) {
  const std::string text = ablation_text(grid_of_rates(), {.interactive = true, .width = 40});
  EXPECT_EQ(text.find("by head count and lr"), std::string::npos) << text;
}

}  // namespace
}  // namespace headlab
