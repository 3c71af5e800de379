#include <algorithm>
#include <array>
#include <set>
#include <thread>

#include <nlohmann/json.hpp>

#include "framework/files/line_log.h"
#include "tests/integration/process.h"

namespace headlab {
namespace {

using Arguments = std::vector<std::string>;

Arguments ablation(const std::string& out, Arguments more = {}) {
  Arguments arguments{"ablate",    "roles", "--heads", "1,2", "--seeds",   "2", "--steps", "60",
                      "--d-model", "16",    "--batch", "8",   "--threads", "1", "--out",   out};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

std::int64_t finished(const std::filesystem::path& sweep) {
  std::error_code error;
  std::int64_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(sweep, error)) {
    if (std::filesystem::exists(entry.path() / "result.json")) ++count;
  }
  return count;
}

TEST_F(Integration, AnInterruptedAblationKeepsItsRunsAndGoesOn) {
  const Ended whole = headlab(ablation("whole", {"--json"}));
  ASSERT_EQ(whole.status, 0) << whole.err;
  const auto want = nlohmann::json::parse(whole.out);

  ProcessOptions interrupt;
  interrupt.interrupt_when = [&] { return finished(folder_ / "parts") >= 1; };
  const Ended first = headlab(ablation("parts"), interrupt);
  ASSERT_EQ(first.status, 130) << first.out << first.err;
  EXPECT_NE(first.out.find("To go on:\n  headlab ablate roles --heads 1,2"), std::string::npos) << first.out;
  const std::int64_t kept = finished(folder_ / "parts");
  EXPECT_GE(kept, 1);

  // Killed, this time.
  interrupt.interrupt_when = [&] { return finished(folder_ / "parts") > std::min<std::int64_t>(kept, 2); };
  interrupt.signal = SIGKILL;
  headlab(ablation("parts"), interrupt);

  const Ended last = headlab(ablation("parts", {"--json"}));
  ASSERT_EQ(last.status, 0) << last.err;
  const auto got = nlohmann::json::parse(last.out);
  EXPECT_EQ(got.at("runs").size(), 4u);
  for (std::size_t level = 0; level < 2; ++level) {
    for (const char* key : {"accuracy", "loss", "difference", "confidence"}) {
      EXPECT_EQ(got["levels"][level].at(key), want["levels"][level].at(key)) << key;
    }
  }
  EXPECT_TRUE(std::filesystem::exists(folder_ / "parts/results.json"));
  EXPECT_TRUE(std::filesystem::exists(folder_ / "parts/results.csv"));

  const Ended inspect = headlab({"inspect", "parts"});
  EXPECT_EQ(inspect.status, 0) << inspect.err;
  EXPECT_NE(inspect.out.find("the median of 2 seeds"), std::string::npos) << inspect.out;
  EXPECT_NE(inspect.out.find("over the seeds"), std::string::npos) << inspect.out;
}

TEST_F(Integration, AnAblationPrintsATable) {
  const Ended ended = headlab(ablation("sweep"));
  ASSERT_EQ(ended.status, 0) << ended.err;
  EXPECT_NE(ended.out.find("heads"), std::string::npos) << ended.out;
  EXPECT_NE(ended.out.find("headlab inspect sweep"), std::string::npos) << ended.out;
  EXPECT_EQ(ended.err, "");
}

/// Steps that a run's metrics.jsonl tells of, each of them once.
std::int64_t steps_once(const std::filesystem::path& run) {
  std::set<std::int64_t> steps;
  for (const std::string& line : read_lines(run / "metrics.jsonl")) {
    const auto json = nlohmann::json::parse(line);
    EXPECT_TRUE(steps.insert(json.at("step").get<std::int64_t>()).second) << line;
  }
  return std::ssize(steps);
}

TEST_F(Integration, TwoAblationsShareAFolder) {
  const Ended alone = headlab(ablation("alone", {"--json"}));
  ASSERT_EQ(alone.status, 0) << alone.err;
  const std::array<std::string, 2> outputs{(folder_ / "first.json").string(),
                                           (folder_ / "second.json").string()};
  std::array<int, 2> statuses{};
  {
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < 2; ++i) {
      threads.emplace_back([&, i] {
        ProcessOptions options;
        options.output = outputs[i];
        statuses[i] = headlab(ablation("shared", {"--json"}), options).status;
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  const auto want = nlohmann::json::parse(alone.out);
  for (std::size_t i = 0; i < 2; ++i) {
    ASSERT_EQ(statuses[i], 0);
    const auto got = nlohmann::json::parse(read_file(outputs[i]));
    ASSERT_EQ(got.at("runs").size(), 4u);
    for (std::size_t run = 0; run < 4; ++run) {
      EXPECT_EQ(got["runs"][run]["loss"], want["runs"][run]["loss"]);
      EXPECT_EQ(steps_once(folder_ / "shared" / got["runs"][run]["name"].get<std::string>()), 60);
    }
  }
}

TEST_F(Integration, AKilledGridWithChosenRatesGoesOn) {
  const std::vector<std::string> more{"--grid", "layers=1,2", "--choose-lr", "0.001,0.01", "--json"};
  const Ended whole = headlab(ablation("whole", more));
  ASSERT_EQ(whole.status, 0) << whole.err;
  // Of 16 runs to choose by and 8 to report: once in each part.
  for (const std::int64_t done : {5, 18}) {
    ProcessOptions kill;
    kill.interrupt_when = [&] { return finished(folder_ / "parts") >= done; };
    kill.signal = SIGKILL;
    headlab(ablation("parts", more), kill);
  }
  const Ended last = headlab(ablation("parts", more));
  ASSERT_EQ(last.status, 0) << last.err;
  auto want = nlohmann::json::parse(whole.out), got = nlohmann::json::parse(last.out);
  ASSERT_EQ(got.at("levels").size(), 4u);
  for (auto* json : {&want, &got}) {
    for (const char* list : {"levels", "runs"}) {
      for (auto& entry : (*json)[list]) entry.erase("seconds");
    }
  }
  EXPECT_EQ(got, want);
  EXPECT_EQ(finished(folder_ / "parts"), 24);
}

}  // namespace
}  // namespace headlab
