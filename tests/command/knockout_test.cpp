#include <fstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "framework/files/atomic_file.h"
#include "tests/command/support.h"

namespace headlab {
namespace {

class KnockoutCommand : public CommandTest {
 protected:
  // Two layers of four heads.
  static void train_induction() {
    ASSERT_EQ(run({"train", "induction", "--steps", "3", "--out", "run", "--threads", "2"}).status, 0);
  }
  static nlohmann::json json_of(std::vector<std::string> arguments) {
    arguments.emplace_back("--json");
    const Outcome outcome = run(std::move(arguments));
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    return nlohmann::json::parse(outcome.out);
  }
};

TEST_F(KnockoutCommand, SaysWhatEveryHeadCostsAndWhetherItMatters) {
  train_induction();
  const Outcome outcome = run({"knockout", "run"});
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  for (const char* text :
       {"off: a head's output is zeroed\n", " of 8 heads matter", "(Holm, α = 0.05, ≥ 1 % of the loss)",
        "This speaks of this model, not of other seeds.\n", "Spearman", "1.8× fewer"}) {
    EXPECT_NE(outcome.out.find(text), std::string::npos) << text << "\n" << outcome.out;
  }
  const nlohmann::json check = json_of({"knockout", "run", "--check", "--sequences", "16"})["reuse"];
  EXPECT_TRUE(check["same_bits"].get<bool>());
  EXPECT_GT(check["seconds_of_whole_passes"].get<double>(), 0);
  const nlohmann::json shapley = json_of({"knockout", "run", "--shapley", "--check", "--sequences", "2"});
  EXPECT_TRUE(shapley["shapley"]["reuse"]["same_bits"].get<bool>());
  const nlohmann::json json = json_of({"knockout", "run", "--how", "mean", "--importance", "token"});
  ASSERT_EQ(json["heads"].size(), 8U);
  EXPECT_EQ(json["how"], "mean");
  EXPECT_EQ(json["importance"], "token");
  EXPECT_EQ(json["sequences"], 512);
  EXPECT_GT(json["heads"][0]["interval"].get<double>(), 0);
  EXPECT_GT(json["heads"][0]["importance"]["token"].get<double>(), 0);
  EXPECT_TRUE(json["reuse"]["staged"].get<bool>());
}

TEST_F(KnockoutCommand, AnswersTheOtherQuestions) {
  train_induction();
  const nlohmann::json set = json_of({"knockout", "run", "--heads", "0.3,1.2", "--random", "5"})["sets"][0];
  EXPECT_EQ(set["heads"], nlohmann::json({"0.3", "1.2"}));
  EXPECT_EQ(set["random_sets"], 5);
  EXPECT_TRUE(set["p_random"].is_number());
  const nlohmann::json steps = json_of({"knockout", "run", "--cumulative", "--sequences", "64"})["steps"];
  ASSERT_EQ(steps.size(), 9U);
  EXPECT_TRUE(steps[0]["head"].is_null());
  const nlohmann::json curve = json_of({"knockout", "run", "--curve", "--sequences", "64"})["curve"];
  EXPECT_EQ(curve["points"][0]["score"], 1.0);
  EXPECT_EQ(curve["points"].back()["off"], 8);
  const nlohmann::json layers = json_of({"knockout", "run", "--keep-one", "--sequences", "64"})["layers"];
  EXPECT_EQ(layers.size(), 2U);
  const nlohmann::json shapley = json_of({"knockout", "run", "--shapley", "--sequences", "16"})["shapley"];
  EXPECT_TRUE(shapley["exact"].get<bool>());
  EXPECT_EQ(shapley["evaluations"], 256);
  double sum = 0;
  for (const auto& head : shapley["heads"]) sum += head["loss"].get<double>();
  EXPECT_NEAR(sum, shapley["loss"].get<double>(), 1e-9);
  // A head of the last layer is read by nobody's keys.
  const nlohmann::json path = json_of({"knockout", "run", "--path", "k", "--sequences", "64"});
  EXPECT_FALSE(path["reuse"]["staged"].get<bool>());
  EXPECT_EQ(path["heads"][5]["loss_added"], 0.0);
  EXPECT_NE(path["heads"][1]["loss_added"], 0.0);
}

TEST_F(KnockoutCommand, PruneSavesASmallerModelThatEveryCommandTakes) {
  train_induction();
  const Outcome outcome = run({"prune", "run", "--keep", "0.4"});
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  for (const char* text : {"run: 4 of 8 heads stay: ", "Its logits equal those of the gated model to ",
                           "as many chosen at random are right in ", "The page: run/report.html"}) {
    EXPECT_NE(outcome.out.find(text), std::string::npos) << text << "\n" << outcome.out;
  }
  EXPECT_EQ(run({"prune", "run", "--gates", "100", "--steps", "40", "--out", "none"}).err,
            "headlab prune: --gates: every gate has shut at 100; try a smaller LAMBDA\n");
  EXPECT_FALSE(std::filesystem::exists("none"));
  EXPECT_NE(read_file("run/report.html").find("4 of 8 heads keep "), std::string::npos);
  const nlohmann::json json = json_of({"prune", "run", "--gates", "0", "--steps", "3", "--out", "open"});
  EXPECT_EQ(json["kept"].size(), 8U);
  EXPECT_LE(json["largest_logit_difference"].get<double>(), 1e-6 * json["largest_logit"].get<double>());
  const nlohmann::json again = json_of({"knockout", "run/pruned.safetensors"});
  EXPECT_EQ(again["heads"].size(), 4U);
  EXPECT_EQ(run({"inspect", "run/pruned.safetensors"}).status, 0);
  EXPECT_EQ(run({"prune", "run/pruned.safetensors", "--keep", "0.5"}).err,
            "headlab prune: --out: needed where RUN is a file\n");
  const std::string text = "the quick brown fox jumps over the lazy dog. ";
  std::string longer;
  for (int i = 0; i < 60; ++i) longer += text;
  std::ofstream("dog.txt") << longer;
  ASSERT_EQ(
      run({"train", "dog.txt", "--steps", "2", "--d-model", "16", "--context", "16", "--layers", "2"}).status,
      0);
  ASSERT_EQ(run({"prune", "runs/dog", "--keep", "0.25"}).status, 0);
  EXPECT_EQ(run({"sample", "runs/dog/pruned.safetensors", "--tokens", "5"}).status, 0);
  const Outcome kinds = run({"knockout", "runs/dog"});
  EXPECT_NE(kinds.out.find("by what the answer is"), std::string::npos) << kinds.out;
}

TEST_F(KnockoutCommand, TrainSwitchesHeadsOffAndRemembersIt) {
  const Outcome outcome =
      run({"train", "induction", "--steps", "3", "--out", "run", "--knockout", "0.3@2,1.0@0"});
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("head 0.3 is off from step 2 on\n"), std::string::npos);
  EXPECT_NE(outcome.out.find("head 1.0 is off from the start\n"), std::string::npos);
  const nlohmann::json heads = json_of({"knockout", "run", "--sequences", "64"})["heads"];
  EXPECT_EQ(heads[3]["loss_added"], 0.0);
  EXPECT_EQ(heads[4]["importance"]["example"], 0.0);
  EXPECT_NE(heads[0]["loss_added"], 0.0);
}

TEST_F(KnockoutCommand, RefusesWhatCannotBeFollowed) {
  expect_usage({"knockout"}, "headlab knockout: RUN is missing; see headlab knockout --help");
  expect_usage(
      {"knockout", "run", "--how", "zer"},
      "headlab knockout: --how: 'zer' is none of zero, mean, resample, uniform, frozen (did you mean "
      "'zero'?)");
  expect_usage({"knockout", "run", "--curve", "--shapley"},
               "headlab knockout: --curve and --shapley: one question at a time");
  expect_usage({"knockout", "run", "--heads", "0.1,0.1"}, "headlab knockout: --heads: 0.1 comes twice");
  expect_usage({"knockout", "run", "--heads", "1"},
               "headlab knockout: --heads: '1' is not LAYER.HEAD, such as 0.3");
  expect_usage({"prune", "run"}, "headlab prune: how many heads stay? --keep 0.5, for example");
  expect_usage({"prune", "run", "--keep", "0"},
               "headlab prune: --keep: 0 is out of range (allowed: above 0, at most 1)");
  expect_usage({"train", "induction", "--knockout", "0.3"},
               "headlab train: --knockout: '0.3' is not LAYER.HEAD@STEP, such as 0.3@500");
  expect_usage({"train", "induction", "--knockout", "0.4@5"},
               "headlab train: head: 0.4 does not exist: layer 0 (blocks.0.attn) has 4 heads");
  train_induction();
  EXPECT_EQ(run({"knockout", "run", "--heads", "2.0"}).err,
            "headlab knockout: head: 2.0 has no layer 2: the model has 2 layers with heads\n");
  EXPECT_EQ(run({"knockout", "run", "--set", "previos"}).err,
            "headlab knockout: --set: 'previos' is no target of induction (did you mean 'previous'?); its "
            "targets: successor, previous\n");
}

}  // namespace
}  // namespace headlab
