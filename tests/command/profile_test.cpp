// --profile, and what it sees of a training step.
#include "framework/core/profile.h"

#include <map>

#include <nlohmann/json.hpp>

#include "framework/command/bench_case.h"
#include "framework/files/atomic_file.h"
#include "framework/files/json_file.h"
#include "tests/command/support.h"

namespace headlab {
namespace {

TEST_F(CommandTest, BenchProfilesOnRequest) {
  write_file("shapes.json",
             R"({"train": [{"name": "c", "L": 2, "h": 3, "d": 21, "T": 5, "B": 7, "V": 11}]})");
  const std::vector<std::string> arguments{"bench", "--shapes", "shapes.json", "--min-time", "0"};
  const auto with = [&](const std::string& option) {
    std::vector<std::string> all = arguments;
    all.push_back(option);
    return run(all);
  };
  const Outcome outcome = with("--profile=trace.json");
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("Where the time went, by operation"), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find("blocks.*.mlp"), std::string::npos) << outcome.out;
  const auto events = nlohmann::json::parse(read_file("trace.json")).at("traceEvents");
  EXPECT_GT(events.size(), 8u * 40);
  EXPECT_EQ(with("--profile").status, 0);
  EXPECT_TRUE(std::filesystem::exists("headlab-profile.json"));
  EXPECT_EQ(with("--profile=").err, "headlab bench: --profile: the value is missing\n");
}

TEST_F(CommandTest, TrainProfilesIntoTheRunAndTrainsTheSame) {
  const std::vector<std::string> arguments{"train", "offsets", "--steps", "3", "--json", "--out"};
  const auto result = [&](const std::string& out, bool profile) {
    std::vector<std::string> all = arguments;
    all.push_back(out);
    if (profile) all.push_back("--profile");
    const Outcome outcome = run(all);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    return nlohmann::json::parse(outcome.out);
  };
  EXPECT_EQ(result("with", true)["train_loss"], result("without", false)["train_loss"]);
  EXPECT_FALSE(std::filesystem::exists("without/profile.json"));
  const nlohmann::json trace = read_json("with/profile.json");
  int steps = 0;
  for (const auto& event : trace.at("traceEvents")) steps += event["name"] == "step" ? 1 : 0;
  EXPECT_EQ(steps, 3);
}

TEST(Bench, AProfileChangesNoLossAndSeesEveryPart) {
  Catalogue catalogue;
  catalogue.build_with(build_model);
  const TrainingShape shape{"c", 2, 3, 21, 5, 7, 11};
  BenchTraining alone(shape, catalogue, false), watched(shape, catalogue, false);
  constexpr int steps = 3;
  std::vector<double> losses;
  for (int i = 0; i < steps; ++i) losses.push_back(alone.step());
  profile::Recording recording;
  for (int i = 0; i < steps; ++i) EXPECT_EQ(watched.step(), losses[static_cast<std::size_t>(i)]);
  const profile::Profile seen = recording.stop();

  // A linear map of 35 rows counts 2·m·n·k forward, and twice that backward, under the layer that called it.
  std::map<std::string, profile::Line> forward, backward;
  for (const profile::Line& line : seen.lines) {
    if (line.op == "linear") (line.pass == profile::Pass::forward ? forward : backward)[line.layer] = line;
  }
  for (const char* layer : {"blocks.0.attn", "blocks.1.attn", "blocks.0.attn.out", "readout"}) {
    ASSERT_TRUE(forward.contains(layer) && backward.contains(layer)) << layer;
    EXPECT_EQ(forward[layer].calls, steps) << layer;
    EXPECT_EQ(backward[layer].calls, steps) << layer;
    EXPECT_EQ(backward[layer].flops, 2 * forward[layer].flops) << layer;
  }
  EXPECT_EQ(forward["blocks.0.attn"].flops, steps * 2 * 35 * 21 * 63);
  EXPECT_EQ(forward["readout"].flops, steps * 2 * 35 * 21 * 11);

  // Whatever the network of a block is made of, it is 2·(2·35·21·84) operations and twice that backward.
  double mlp = 0;
  for (const profile::Line& line : seen.lines) {
    if (line.layer.rfind("blocks.1.mlp", 0) == 0) mlp += line.flops;
  }
  EXPECT_EQ(mlp, steps * 3 * 2 * 2.0 * 35 * 21 * 84);

  std::map<std::string, double> flops, bytes;
  std::map<std::string, std::int64_t> calls;
  for (const profile::Line& line : seen.lines) {
    flops[line.op] += line.flops;
    bytes[line.op] += line.bytes;
    calls[line.op] += line.calls;
  }
  EXPECT_GT(flops["attention"], 0);
  for (const char* op : {"attention", "layer_norm", "cross_entropy", "embedding", "adamw", "clip"}) {
    EXPECT_GT(bytes[op], 0) << op;
  }
  EXPECT_EQ(calls["adamw"], steps);
  EXPECT_EQ(calls["clip"], steps);
  EXPECT_EQ(calls["backward"], steps);
  EXPECT_EQ(bytes["adamw"], steps * 7 * 4 * training_needs(shape).parameters());
}

}  // namespace
}  // namespace headlab
