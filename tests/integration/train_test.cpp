#include <algorithm>
#include <sstream>

#include <nlohmann/json.hpp>

#include "tests/integration/process.h"

namespace headlab {
namespace {

using Arguments = std::vector<std::string>;

std::int64_t lines_of(const std::filesystem::path& path) {
  const std::string text = text_of(path);
  return std::count(text.begin(), text.end(), '\n');
}

/// Roles with two layers, an MLP and dropout would be slow; this is a second of work in 400 steps.
Arguments training(const std::string& out, Arguments more = {}) {
  Arguments arguments{"train",    "roles", "--steps",        "400", "--d-model", "16", "--heads", "2",
                      "--layers", "2",     "--dropout",      "0.1", "--batch",   "8",  "--seed",  "3",
                      "--out",    out,     "--accumulation", "2"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

/// The loss of every step, as written.
std::vector<std::string> losses(const std::filesystem::path& metrics) {
  std::istringstream lines(text_of(metrics));
  std::vector<std::string> losses;
  for (std::string line; std::getline(lines, line);)
    losses.push_back(nlohmann::json::parse(line).at("loss").dump());
  return losses;
}

TEST_F(Integration, AnInterruptedTrainingGoesOnBitForBit) {
  const Ended whole = headlab(training("whole"));
  ASSERT_EQ(whole.status, 0) << whole.err;
  EXPECT_NE(whole.out.find("headlab inspect whole"), std::string::npos) << whole.out;

  const auto metrics = folder_ / "parts/metrics.jsonl";
  ProcessOptions interrupt;
  interrupt.interrupt_when = [&] { return lines_of(metrics) >= 20; };
  const Ended first = headlab(training("parts"), interrupt);
  ASSERT_EQ(first.status, 130) << first.out << first.err;
  EXPECT_NE(first.out.find("headlab train --resume parts"), std::string::npos) << first.out;
  const std::int64_t done = lines_of(metrics);
  ASSERT_LT(done, 400);

  interrupt.interrupt_when = [&] { return lines_of(metrics) >= done + 10; };
  interrupt.signal = SIGTERM;
  ASSERT_EQ(headlab({"train", "--resume", "parts", "--threads", "2"}, interrupt).status, 130);
  const Ended last = headlab({"train", "--resume", "parts", "--json"});
  ASSERT_EQ(last.status, 0) << last.err;
  EXPECT_EQ(nlohmann::json::parse(last.out).at("steps"), 400);

  const std::vector<std::string> want = losses(folder_ / "whole/metrics.jsonl");
  EXPECT_EQ(want.size(), 400u);
  EXPECT_EQ(losses(metrics), want);
  EXPECT_EQ(text_of(folder_ / "parts/checkpoints/last.safetensors"),
            text_of(folder_ / "whole/checkpoints/last.safetensors"));
}

TEST_F(Integration, WatchedHeadsAreTheSameAfterAnInterruption) {
  ASSERT_EQ(headlab(training("whole", {"--watch-heads", "30"})).status, 0);
  ASSERT_EQ(headlab(training("unseen")).status, 0);
  EXPECT_EQ(text_of(folder_ / "whole/checkpoints/last.safetensors"),
            text_of(folder_ / "unseen/checkpoints/last.safetensors"));

  const auto metrics = folder_ / "parts/metrics.jsonl";
  ProcessOptions kill;
  kill.signal = SIGKILL;
  kill.interrupt_when = [&] { return lines_of(metrics) >= 100; };
  headlab(training("parts", {"--watch-heads", "30", "--checkpoint-every", "40"}), kill);
  ASSERT_LT(lines_of(metrics), 400);
  const Ended last = headlab({"train", "--resume", "parts"});  // watched as before
  ASSERT_EQ(last.status, 0) << last.err;
  EXPECT_EQ(text_of(folder_ / "parts/heads.safetensors"), text_of(folder_ / "whole/heads.safetensors"));
  EXPECT_EQ(text_of(metrics), text_of(folder_ / "whole/metrics.jsonl"));

  for (const char* wrong : {"0", "-1", "many", ""}) {
    const Ended refused = headlab(training("wrong", {"--watch-heads", wrong}));
    EXPECT_EQ(refused.status, 2) << wrong;
    EXPECT_EQ(refused.err.find("headlab train: --watch-heads: "), 0u) << refused.err;
  }
}

TEST_F(Integration, JsonIsOneObjectAndNothingElse) {
  const Ended run = headlab(training("run", {"--json"}));
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_EQ(run.err, "");
  const auto json = nlohmann::json::parse(run.out);
  for (const char* key : {"task", "steps", "train_loss", "validation_loss", "accuracy", "parameters",
                          "seconds", "tokens_per_second", "run"}) {
    EXPECT_TRUE(json.contains(key) && !json[key].is_null()) << key;
  }
  EXPECT_EQ(json["task"], "roles");
  EXPECT_EQ(json["run"], "run");
  EXPECT_GT(json["accuracy"], 0.1);

  for (const Arguments& arguments : {Arguments{"inspect", "run", "--json"},
                                     {"tasks", "--json"},
                                     {"inspect", "run", "--head", "1.1", "--json"}}) {
    const Ended ended = headlab(arguments);
    EXPECT_EQ(ended.status, 0) << ended.err;
    EXPECT_TRUE(nlohmann::json::accept(ended.out)) << ended.out;
  }
}

TEST_F(Integration, InspectShowsEveryHeadAndDrawsOne) {
  ASSERT_EQ(headlab(training("run")).status, 0);
  const Ended table = headlab({"inspect", "run"});
  ASSERT_EQ(table.status, 0) << table.err;
  for (const char* head : {"0.0", "0.1", "1.0", "1.1"}) EXPECT_NE(table.out.find(head), std::string::npos);
  for (const char* heading : {"confidence", "entropy", "offset", "distance", "target", "mass", "role", "null",
                              "needed", "heads ", "Specialisation"}) {
    EXPECT_NE(table.out.find(heading), std::string::npos) << heading;
  }
  const auto json = nlohmann::json::parse(headlab({"inspect", "run", "--json"}).out);
  ASSERT_EQ(json["heads"].size(), 4u);
  for (const auto& head : json["heads"]) {
    EXPECT_TRUE(head.contains("role"));
    EXPECT_GE(head["roles"].size(), 8u);
    for (const auto& role : head["roles"]) {
      const double needed = std::max(role["null_threshold"].get<double>(), role["floor"].get<double>());
      EXPECT_TRUE(!role["holds"] || role["score"] >= needed) << role;
      EXPECT_GE(role["null_draws"], 1000) << role;
    }
    EXPECT_GE(head["weights"]["qk_effective_rank"], 1);
  }
  EXPECT_EQ(json["compositions"].size(), 4u);  // each head of layer 0 with each of layer 1
  EXPECT_EQ(json["layers"].size(), 2u);
  const Ended life = headlab({"lifeline", "run", "--every", "1000"});
  EXPECT_EQ(life.status, 0) << life.err;
  for (const char* word : {"role at the end", "born", "moments from step 0", "loss"}) {
    EXPECT_NE(life.out.find(word), std::string::npos) << life.out;
  }
  const Ended map = headlab({"inspect", "run", "--head", "1.0", "--example", "2"});
  EXPECT_EQ(map.status, 0) << map.err;
  EXPECT_NE(map.out.find("head 1.0"), std::string::npos) << map.out;
  EXPECT_EQ(headlab({"inspect", "run", "--head", "2.0"}).status, 2);
  EXPECT_EQ(headlab({"inspect", "run", "--head", "0.2"}).status, 2);
  EXPECT_EQ(headlab({"inspect", "run", "--head", "0.0", "--example", "1024"}).status, 2);
  const Ended sample = headlab({"sample", "run"});
  EXPECT_EQ(sample.status, 1);
  EXPECT_NE(sample.err.find("only runs over text files can be sampled from"), std::string::npos)
      << sample.err;
}

TEST_F(Integration, ARunIsNeverOverwritten) {
  ASSERT_EQ(headlab(training("run")).status, 0);
  const std::string before = text_of(folder_ / "run/checkpoints/last.safetensors");
  const Ended again = headlab(training("run"));
  EXPECT_EQ(again.status, 1);
  EXPECT_NE(again.err.find("--resume run"), std::string::npos) << again.err;
  EXPECT_EQ(text_of(folder_ / "run/checkpoints/last.safetensors"), before);
  const Ended changed = headlab({"train", "--resume", "run", "--lr", "0.1"});
  EXPECT_EQ(changed.status, 2);
  EXPECT_EQ(changed.err.find("headlab train: --lr: cannot be changed"), 0u) << changed.err;
}

}  // namespace
}  // namespace headlab
