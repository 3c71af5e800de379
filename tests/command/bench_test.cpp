#include <sstream>

#include <nlohmann/json.hpp>

#include "framework/command/bench_case.h"
#include "framework/command/bench_timing.h"
#include "framework/command/memory.h"
#include "framework/files/atomic_file.h"
#include "framework/nn/attention.h"
#include "tests/command/support.h"

namespace headlab {
namespace {

constexpr const char* tiny = R"({"mha": [{"name": "a", "B": 2, "T": 3, "d": 10, "h": 5, "causal": true},
                                         {"name": "b", "B": 1, "T": 1, "d": 1, "h": 1, "causal": false}],
                                 "train": [{"name": "c", "L": 2, "h": 3, "d": 21, "T": 5, "B": 7, "V": 11}]})";

std::vector<nlohmann::json> json_lines(const std::string& text) {
  std::vector<nlohmann::json> result;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) result.push_back(nlohmann::json::parse(line));
  return result;
}

TEST_F(CommandTest, BenchPrintsOneJsonObjectACase) {
  write_file("shapes.json", tiny);
  const Outcome outcome =
      run({"bench", "--shapes", "shapes.json", "--json", "--min-time", "0", "--threads", "2"});
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  const auto lines = json_lines(outcome.out);
  ASSERT_EQ(lines.size(), 3u);
  for (const auto& line : lines) {
    EXPECT_EQ(line.at("peer").get<std::string>().rfind("headlab-", 0), 0u);
    EXPECT_EQ(line.at("threads"), 2);
    EXPECT_GE(line.at("n"), 5);
    EXPECT_GT(line.at("ms"), 0);
    EXPECT_LE(line.at("ms_min"), line.at("ms_low"));
    EXPECT_LE(line.at("ms_low"), line.at("ms"));
    EXPECT_LE(line.at("ms"), line.at("ms_high"));
    EXPECT_LE(line.at("ms_high"), line.at("ms_max"));
    EXPECT_GT(line.at("first_ms"), 0);
    EXPECT_GT(line.at("peak_gflops"), 0);
    if (peak_memory()) {
      EXPECT_GT(line.at("peak_memory_mb"), 1);
    }
    EXPECT_TRUE(line.contains("gflops") && line.contains("peak_share"));
  }
  EXPECT_EQ(lines[0]["kind"], "mha");
  EXPECT_EQ(lines[0]["name"], "a");
  EXPECT_EQ(lines[1]["name"], "b");
  EXPECT_EQ(lines[2]["kind"], "train");
  EXPECT_EQ(lines[2]["name"], "c");
}

TEST_F(CommandTest, BenchChoosesByKindAndName) {
  write_file("shapes.json", tiny);
  const auto names = [&](std::vector<std::string> more) {
    std::vector<std::string> arguments{"bench", "--shapes", "shapes.json", "--json", "--min-time", "0"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    std::vector<std::string> found;
    for (const auto& line : json_lines(run(arguments).out)) found.push_back(line["name"]);
    return found;
  };
  using Names = std::vector<std::string>;
  EXPECT_EQ(names({"--kind", "train"}), Names{"c"});
  EXPECT_EQ(names({"--only", "c,a"}), (Names{"a", "c"}));
  EXPECT_EQ(names({"--kind", "ops", "--only", "adamw"}).size(), 1u);
  EXPECT_EQ(names({"--kind", "ops", "--only", "b"}),
            (Names{"linear-1x1x3-forward", "linear-1x1x3", "attention-1x1x1-h1-forward", "attention-1x1x1-h1",
                   "linear-1x1x1-forward", "linear-1x1x1"}));
  const std::vector<std::string> all = names({"--kind", "ops", "--telemetry"});
  for (const char* op : {"linear", "attention", "layer_norm", "gelu", "softmax", "cross_entropy", "embedding",
                         "adamw", "clip"}) {
    EXPECT_TRUE(std::any_of(all.begin(), all.end(), [&](const auto& name) { return name.rfind(op, 0) == 0; }))
        << op;
  }
}

TEST_F(CommandTest, BenchTableHasALineACase) {
  write_file("shapes.json", tiny);
  const Outcome outcome = run({"bench", "--shapes", "shapes.json", "--min-time", "0"});
  EXPECT_EQ(outcome.out.find("The limit here: "), 0u) << outcome.out;
  for (const char* line : {"\nmha a ", "\nmha b ", "\ntrain c "}) {
    EXPECT_NE(outcome.out.find(line), std::string::npos) << outcome.out;
  }
}

TEST_F(CommandTest, BenchRefusesWhatItCannotFollow) {
  expect_usage({"bench", "--kind", "mah"},
               "headlab bench: --kind: 'mah' is none (did you mean 'mha'?) (allowed: mha, train, ops)");
  expect_usage({"bench", "--only", "base-h2"},
               "headlab bench: --only: no case 'base-h2' (did you mean 'base-h1'?) (allowed: seed, toy, "
               "base-h1, base-h4, base-h8, base-h16, long-2k, long-4k, toy-2L-d64, nanogpt-cpu, "
               "nanogpt-6L-384, gpt2-124M)");
  expect_usage({"bench", "--kind", "train", "--only", "toy,"},
               "headlab bench: --only: no case 'toy' (allowed: toy-2L-d64, nanogpt-cpu, nanogpt-6L-384, "
               "gpt2-124M)");
  EXPECT_EQ(run({"bench", "--shapes", "nowhere.json"}).status, 2);
}

TEST(Bench, CountsTheOperationsOfTheComparison) {
  // 3·(8·B·T·d² + 4·B·T²·d), half of the second term under a causal mask.
  EXPECT_EQ(attention_case({"x", 2, 3, 10, 5, false}, false).flops, 3 * (8 * 2 * 3 * 100 + 4 * 2 * 9 * 10));
  EXPECT_EQ(attention_case({"x", 2, 3, 10, 5, true}, false).flops, 3 * (8 * 2 * 3 * 100 + 2 * 2 * 9 * 10));
  const Catalogue catalogue;
  EXPECT_EQ(training_case({"c", 2, 3, 21, 5, 7, 11}, catalogue, false).flops,
            35 * (6 * (12 * 2 * 21 * 21 + 11 * 21) + 6 * 2 * 5 * 21));
}

TEST(Bench, ATrainingStepUpdatesEverythingAndLearns) {
  Catalogue catalogue;
  catalogue.build_with(build_model);
  BenchTraining training({"c", 2, 3, 21, 5, 7, 11}, catalogue, false);
  const auto before = training.model().state();
  const double first = training.step();
  EXPECT_NEAR(first, std::log(11.0), 0.05);
  for (const auto& [path, value] : training.model().state()) {
    const Array& old = before.at(path);
    bool changed = false;
    for (std::int64_t i = 0; i < value.size(); ++i) changed = changed || value.at(i) != old.at(i);
    EXPECT_TRUE(changed) << path;
  }
  double last = first;
  for (int i = 0; i < 100; ++i) last = training.step();
  EXPECT_LT(last, first - 0.5);
  std::vector<std::string> names;
  for (const NamedParameter& named : training.model().parameters()) names.push_back(named.path);
  for (const char* name : {"blocks.1.attn.qkv.bias", "blocks.1.mlp.up.bias", "blocks.1.norm_mlp.bias",
                           "embed.position.weight", "readout.norm.bias"}) {
    EXPECT_NE(std::find(names.begin(), names.end(), name), names.end()) << name;
  }
}

TEST(Bench, TelemetryIsGatheredAndChangesNoLoss) {
  Catalogue catalogue;
  catalogue.build_with(build_model);
  const TrainingShape shape{"c", 2, 3, 21, 5, 7, 11};
  BenchTraining without(shape, catalogue, false), with(shape, catalogue, true);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(without.step(), with.step());
  for (HeadLayer* layer : head_layers(with.model())) EXPECT_TRUE(layer->telemetry().has_value());
}

TEST(Bench, WarmsUpAndRepeatsAtLeastFiveTimes) {
  int calls = 0;
  const Timing timing = measure([&] { ++calls; }, 0);
  EXPECT_EQ(calls, 8);
  EXPECT_EQ(timing.calls, 5);
}

}  // namespace
}  // namespace headlab
