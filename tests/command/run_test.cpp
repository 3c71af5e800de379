#include "framework/command/run.h"

#include <sstream>

#include <nlohmann/json.hpp>

#include "framework/report/terminal.h"
#include "tests/command/support.h"

namespace headlab {
namespace {

const std::vector<std::string> names{"tasks",    "train",     "sample",      "ablate", "inspect",
                                     "lifeline", "reproduce", "check-layer", "verify", "bench"};

TEST_F(CommandTest, HelpOfEverySubCommandShowsAnExampleAndFitsATerminal) {
  for (const std::string& name : names) {
    for (const Outcome& help : {run({name, "--help"}), run({name, "-h"}), run({"help", name})}) {
      EXPECT_EQ(help.status, 0);
      EXPECT_EQ(help.err, "");
      EXPECT_NE(help.out.find("Usage: headlab " + name), std::string::npos) << help.out;
      EXPECT_NE(help.out.find("Examples:\n  headlab " + name), std::string::npos) << help.out;
      std::istringstream lines(help.out);
      for (std::string line; std::getline(lines, line);) EXPECT_LE(display_width(line), 100) << line;
    }
  }
}

TEST_F(CommandTest, HelpListsTheSubCommands) {
  const Outcome help = run({"--help"});
  EXPECT_EQ(help.status, 0);
  for (const std::string& name : names) EXPECT_NE(help.out.find("\n  " + name + " "), std::string::npos);
  EXPECT_NE(help.out.find("Examples:\n"), std::string::npos);
  EXPECT_EQ(run({"help"}).out, help.out);
}

TEST_F(CommandTest, CheckLayerSaysWhatItSawOfALayerOfTheCatalogue) {
  const Outcome list = run({"check-layer"});
  EXPECT_EQ(list.status, 0);
  for (const KnownLayer& layer : built_in_layers())
    EXPECT_NE(list.out.find("\n " + layer.name + " "), std::string::npos) << list.out;
  const Outcome linear = run({"check-layer", "linear"});
  EXPECT_EQ(linear.status, 0) << linear.out;
  EXPECT_NE(linear.out.find("gradient of weight"), std::string::npos) << linear.out;
  EXPECT_NE(linear.out.find("The layer linear can be trained, saved and looked at"), std::string::npos);
  const nlohmann::json json = nlohmann::json::parse(run({"check-layer", "linear", "--json"}).out);
  EXPECT_EQ(json["passed"], true);
  EXPECT_EQ(json["parameters"], 42);
  EXPECT_GT(json["flops"], 0);
  expect_usage({"check-layer", "liner"},
               "headlab check-layer: no layer 'liner' (did you mean 'linear'?); there are attention, "
               "cross-attention, linear, feed-forward, layer-norm, rms-norm, embedding");
}

TEST_F(CommandTest, SharedOptionsReadTheSameEverywhere) {
  std::string threads;
  for (const std::string name : {"train", "sample", "ablate", "inspect", "lifeline", "verify", "bench"}) {
    const std::string help = run({name, "--help"}).out;
    const std::size_t at = help.find("threads to use");
    ASSERT_NE(at, std::string::npos) << name;
    EXPECT_NE(help.find("--json"), std::string::npos) << name;
  }
}

TEST_F(CommandTest, SuggestsTheNearestSubCommandOptionAndTask) {
  expect_usage({"tran"}, "headlab: no sub-command 'tran' (did you mean 'train'?); see headlab --help");
  expect_usage({}, "headlab: no sub-command; see headlab --help");
  expect_usage({"--threads", "2", "train"},
               "headlab: '--threads' stands before the sub-command; options go behind it: headlab train TASK "
               "--threads");
  expect_usage({"train", "offsets", "--stesp", "3"},
               "headlab train: unknown option '--stesp' (did you mean '--steps'?); see headlab train --help");
  for (const std::string command : {"train", "ablate"}) {
    expect_usage({command, "ofsets"}, "headlab " + command +
                                          ": task: there is no task and no text file 'ofsets' (did you mean "
                                          "'offsets'?)");
  }
}

struct NumericOption {
  std::vector<std::string> command;
  std::string option;
  double min, max;
  bool whole = true;
};

const std::vector<NumericOption> numeric_options{
    {{"train", "offsets"}, "--heads", 1, 1024},
    {{"train", "offsets"}, "--d-model", 1, 1e9},
    {{"train", "offsets"}, "--layers", 1, 1024},
    {{"train", "offsets"}, "--context", 1, 1e6},
    {{"train", "offsets"}, "--dropout", 0, 1, false},
    {{"train", "offsets"}, "--steps", 1, 1e9},
    {{"train", "offsets"}, "--batch", 1, 1e6},
    {{"train", "offsets"}, "--lr", 1e-300, 100, false},
    {{"train", "offsets"}, "--accumulation", 1, 1e6},
    {{"train", "offsets"}, "--eval-every", 0, 1e9},
    {{"train", "offsets"}, "--checkpoint-every", 0, 1e9},
    {{"train", "offsets"}, "--seed", 0, 1e18},
    {{"train", "offsets"}, "--threads", 0, 256},
    {{"sample", "run"}, "--tokens", 1, 1e9},
    {{"sample", "run"}, "--temperature", 0, 1e6, false},
    {{"sample", "run"}, "--top-k", 0, 1e9},
    {{"sample", "run"}, "--seed", 0, 1e18},
    {{"sample", "run"}, "--threads", 0, 256},
    {{"ablate"}, "--heads", 1, 1024},
    {{"ablate"}, "--seeds", 1, 1000},
    {{"ablate"}, "--reference", 1, 1024},
    {{"ablate"}, "--d-model", 1, 1e9},
    {{"ablate"}, "--steps", 1, 1e9},
    {{"ablate"}, "--lr", 1e-300, 100, false},
    {{"ablate"}, "--seed", 0, 1e18},
    {{"ablate"}, "--threads", 0, 256},
    {{"inspect", "run"}, "--example", 0, 1e9},
    {{"inspect", "run"}, "--threads", 0, 256},
    {{"lifeline", "run"}, "--every", 1, 1e9},
    {{"verify"}, "--threads", 0, 256},
    {{"bench"}, "--threads", 0, 256},
    {{"bench"}, "--min-time", 0, 3600, false},
};

TEST_F(CommandTest, EveryNumericOptionRefusesWhatIsNoNumberInItsRange) {
  struct Value {
    std::string text;
    double number;  // nan: none at all
    bool whole;
  };
  const std::vector<Value> values{{"-1", -1, true},
                                  {"0", 0, true},
                                  {"1e9", 1e9, false},
                                  {"1000000000", 1e9, true},
                                  {"2.5", 2.5, false},
                                  {"99999999999999999999", 1e20, true},
                                  {"0x10", std::nan(""), true},
                                  {"4x", std::nan(""), true},
                                  {"", std::nan(""), true},
                                  {" 4", std::nan(""), true},
                                  {"nan", std::nan(""), true},
                                  {"inf", std::nan(""), true},
                                  {"1e400", HUGE_VAL, false},
                                  {"1;5", std::nan(""), true}};
  int refused = 0;
  for (const NumericOption& option : numeric_options) {
    for (const Value& value : values) {
      const bool fits =
          value.number >= option.min && value.number <= option.max && (value.whole || !option.whole);
      if (fits) continue;
      std::vector<std::string> arguments = option.command;
      arguments.insert(arguments.end(), {option.option, value.text});
      const Outcome outcome = run(arguments);
      EXPECT_EQ(outcome.status, 2) << option.option << " '" << value.text << "'";
      EXPECT_EQ(outcome.out, "");
      EXPECT_EQ(outcome.err.find("headlab " + option.command[0] + ": " + option.option + ": "), 0u)
          << outcome.err;
      const bool empty_list =
          value.text.empty() && option.command[0] == "ablate" && option.option == "--heads";
      EXPECT_NE(outcome.err.find(empty_list ? "the list is empty" : "(allowed: "), std::string::npos)
          << outcome.err;
      EXPECT_EQ(outcome.err.find('\n'), outcome.err.size() - 1) << outcome.err;
      ++refused;
    }
  }
  EXPECT_GT(refused, 300);
  EXPECT_TRUE(std::filesystem::is_empty(folder_.path()));
}

TEST_F(CommandTest, RefusesHeadListsBeforeTheFirstRun) {
  const auto ablate = [](std::string_view heads) {
    return std::vector<std::string>{"ablate", "offsets", "--d-model", "8", "--heads", std::string(heads)};
  };
  const std::string where = "headlab ablate: --heads: ";
  expect_usage(ablate("1,,2"), where + "element 2 of '1,,2' is empty");
  expect_usage(ablate(","), where + "element 1 of ',' is empty");
  expect_usage(ablate("1,2,"), where + "element 3 of '1,2,' is empty");
  expect_usage(ablate("1,1"), where + "element 2 of '1,1' repeats 1");
  expect_usage(ablate("8,3"), where + "3 does not divide --d-model 8");
  expect_usage(ablate("0,1"), where + "element 1 of '0,1': 0 is out of range (allowed: 1 … 1024)");
  expect_usage(ablate("1, 2"), where + "element 2 of '1, 2': ' 2' is not a whole number (allowed: 1 … 1024)");
  expect_usage({"ablate", "--heads", "1,4", "--reference", "2"},
               "headlab ablate: --reference: 2 is not among --heads");
}

TEST_F(CommandTest, RefusesHeadsThatDoNotDivideTheModel) {
  const auto train = [](std::string d_model, std::string heads) {
    return std::vector<std::string>{"train",   "offsets",       "--d-model", std::move(d_model),
                                    "--heads", std::move(heads)};
  };
  expect_usage(train("10", "3"), "headlab train: --heads: 3 does not divide --d-model 10");
  expect_usage(train("8", "16"), "headlab train: --heads: 16 does not divide --d-model 8");
  expect_usage(train("8", "0"), "headlab train: --heads: 0 is out of range (allowed: 1 … 1024)");
  expect_usage(train("0", "1"), "headlab train: --d-model: 0 is out of range (allowed: 1 … 1000000000)");
}

TEST_F(CommandTest, RefusesWhatMemoryCannotHold) {
  const Outcome model = run({"train", "offsets", "--d-model", "1000000000"});
  EXPECT_EQ(model.status, 2);
  EXPECT_EQ(model.err.find("headlab train: --d-model: about 64 EB of memory would be needed"), 0u)
      << model.err;
  const Outcome batch = run({"ablate", "offsets", "--batch", "1000000", "--layers", "1000"});
  EXPECT_EQ(batch.status, 2);
  EXPECT_EQ(batch.err.find("headlab ablate: --batch: about "), 0u) << batch.err;
  EXPECT_TRUE(std::filesystem::is_empty(folder_.path()));
}

TEST_F(CommandTest, RefusesOptionsThatDoNotFitTogether) {
  expect_usage({"train"},
               "headlab train: TASK or FILE is missing: headlab train offsets, for example; headlab "
               "tasks lists the tasks");
  expect_usage({"train", "offsets", "--context", "8"},
               "headlab train: --context: only for text files; offsets has its own");
  expect_usage({"train", "offsets", "--bytes"},
               "headlab train: --bytes: only for text files; offsets has its own tokens");
  expect_usage({"train", "offsets", "--accumulation", "3"},
               "headlab train: --accumulation: 3 does not divide --batch 32");
  expect_usage({"train", "--resume", "nowhere"}, "headlab train: nowhere: no such run folder");
  expect_usage({"inspect", "run", "--head", "3"},
               "headlab inspect: --head: '3' is not LAYER.HEAD, such as 0.3");
  expect_usage({"inspect", "run", "--example", "3"}, "headlab inspect: --example: goes with --head");
  expect_usage({"sample"}, "headlab sample: RUN is missing; see headlab sample --help");
}

TEST_F(CommandTest, MissingRunsAreFailures) {
  for (const std::string command : {"sample", "inspect"}) {
    const Outcome outcome = run({command, "nowhere"});
    EXPECT_EQ(outcome.status, 1);
    EXPECT_EQ(outcome.err.find("headlab " + command + ": nowhere: "), 0u) << outcome.err;
  }
}

TEST_F(CommandTest, WarnsAboutMoreThreadsThanCpus) {
  const Outcome outcome = run({"inspect", "nowhere", "--threads", "256"});
  EXPECT_EQ(outcome.err.find("headlab inspect: warning: --threads: 256 is more than the "), 0u)
      << outcome.err;
  EXPECT_EQ(threads(), 256);
}

TEST_F(CommandTest, TasksAreListedForPeopleAndPrograms) {
  const Outcome table = run({"tasks"});
  EXPECT_EQ(table.status, 0);
  EXPECT_LT(table.out.find("offsets"), table.out.find("roles"));
  EXPECT_NE(table.out.find("one look-up per head"), std::string::npos);
  const auto json = nlohmann::json::parse(run({"tasks", "--json"}).out);
  EXPECT_EQ(json.at("tasks").size(), 3u);
  EXPECT_EQ(json["tasks"][0]["name"], "offsets");
  EXPECT_EQ(json["tasks"][0]["heads"], 8);
}

TEST_F(CommandTest, ReproduceRefusesWhatItCannotTrain) {
  expect_usage({"reproduce", "ofsets"},
               "headlab reproduce: there is no task 'ofsets' (did you mean 'offsets'?)");
  expect_usage({"reproduce", "roles", "roles"}, "headlab reproduce: roles: given twice");
  expect_usage({"reproduce", "--seeds", "0"},
               "headlab reproduce: --seeds: 0 is out of range (allowed: 1 … 1000)");
}

}  // namespace
}  // namespace headlab
