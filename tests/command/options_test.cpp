#include "framework/command/options.h"

#include <gtest/gtest.h>

#include "tests/support/errors.h"

namespace headlab {
namespace {

struct Fixture {
  std::optional<std::string> name, out;
  std::int64_t steps = 7;
  std::optional<std::int64_t> batch;
  double rate = 0.5;
  std::optional<double> dropout;
  std::vector<std::int64_t> heads{1, 4};
  bool json = false;
  CommandLine line{"train", "does something"};

  explicit Fixture(bool required = false) {
    line.argument("TASK", name, "a task", required)
        .group("Options")
        .whole("--steps", steps, {1, 100}, "training steps")
        .whole("--batch", batch, {1, 50}, "examples in a step", "the task's")
        .real("--lr", rate, {.min = 0, .max = 1, .above_min = true}, "learning rate")
        .real("--dropout", dropout, {0, 1}, "share dropped")
        .whole_list("--heads", heads, {1, 16}, "head counts")
        .text("--out", "DIR", out, "folder", "runs/TASK")
        .flag("--json", json, "for programs")
        .example("headlab train offsets", "trains");
  }
  bool read(const std::vector<std::string>& arguments) { return line.read(arguments); }
  std::string refuse(const std::vector<std::string>& arguments) {
    return error_of([&] { line.read(arguments); });
  }
};

TEST(CommandLine, ReadsEveryKindOfValue) {
  Fixture f;
  EXPECT_TRUE(f.read({"--steps", "5", "offsets", "--lr=0.1", "--heads", "2,8", "--json", "--out=a=b",
                      "--batch", "050", "--dropout", "0"}));
  EXPECT_EQ(f.name, "offsets");
  EXPECT_EQ(f.steps, 5);
  EXPECT_EQ(f.batch, 50);
  EXPECT_EQ(f.rate, 0.1);
  EXPECT_EQ(f.dropout, 0.0);
  EXPECT_EQ(f.heads, (std::vector<std::int64_t>{2, 8}));
  EXPECT_EQ(f.out, "a=b");
  EXPECT_TRUE(f.json);
}

TEST(CommandLine, AFlagMayHaveAValueBehindAnEqualsSign) {
  struct Given {
    bool on = false;
    std::optional<std::string> file, name;
    bool read(const std::vector<std::string>& arguments) {
      CommandLine line("train", "does something");
      line.argument("TASK", name, "a task", false)
          .flag_or_text("--trace", "FILE", on, file, "traces", "t.json");
      EXPECT_NE(line.help().find("--trace[=FILE]  traces (default: t.json)"), std::string::npos)
          << line.help();
      return line.read(arguments);
    }
  };
  Given alone, with, without;
  EXPECT_TRUE(alone.read({"--trace", "offsets"}));
  EXPECT_TRUE(alone.on);
  EXPECT_FALSE(alone.file);
  EXPECT_EQ(alone.name, "offsets");  // not the option's value
  EXPECT_TRUE(with.read({"--trace=a=b"}));
  EXPECT_TRUE(with.on);
  EXPECT_EQ(with.file, "a=b");
  EXPECT_TRUE(without.read({}));
  EXPECT_FALSE(without.on);
  EXPECT_EQ(error_of([&] { with.read({"--trace="}); }), "--trace: the value is missing");
  EXPECT_EQ(error_of([&] { with.read({"--trace=a", "--trace"}); }), "--trace: given twice");
}

TEST(CommandLine, LeavesWhatIsNotGiven) {
  Fixture f;
  EXPECT_TRUE(f.read({}));
  EXPECT_EQ(f.steps, 7);
  EXPECT_FALSE(f.name || f.batch || f.dropout || f.out || f.json);
  EXPECT_EQ(f.heads, (std::vector<std::int64_t>{1, 4}));
}

TEST(CommandLine, RefusesValuesNamingOptionValueAndRange) {
  Fixture f;
  EXPECT_EQ(f.refuse({"--steps", "0"}), "--steps: 0 is out of range (allowed: 1 … 100)");
  EXPECT_EQ(f.refuse({"--steps", "-1"}), "--steps: -1 is out of range (allowed: 1 … 100)");
  EXPECT_EQ(f.refuse({"--steps", "1e9"}), "--steps: '1e9' is not a whole number (allowed: 1 … 100)");
  EXPECT_EQ(f.refuse({"--lr", "nan"}), "--lr: 'nan' is not a number (allowed: above 0, at most 1)");
  EXPECT_EQ(f.refuse({"--heads", "1,,2"}), "--heads: element 2 of '1,,2' is empty");
  EXPECT_EQ(f.refuse({"--heads", "[1,2]"}),
            "--heads: element 1 of '[1,2]': '[1' is not a whole number (allowed: 1 … 16)");
  EXPECT_THROW(f.read({"--steps", "x"}), UsageError);
}

TEST(CommandLine, TellsAnEmptyValueFromAMissingOne) {
  Fixture f;
  const std::string empty = "--steps: '' is not a whole number (allowed: 1 … 100)";
  EXPECT_EQ(f.refuse({"--steps", ""}), empty);
  EXPECT_EQ(f.refuse({"--steps="}), empty);
  EXPECT_EQ(f.refuse({"--steps=", "5"}), empty);
  EXPECT_EQ(f.refuse({"--steps"}), "--steps: the value is missing");
  EXPECT_EQ(f.refuse({"--out", "--json"}), "--out: the value is missing");
  EXPECT_EQ(f.refuse({"--json=yes"}), "--json: takes no value");
}

TEST(CommandLine, RefusesAnOptionGivenTwice) {
  Fixture f;
  EXPECT_EQ(f.refuse({"--steps", "5", "--steps", "6"}), "--steps: given twice");
  EXPECT_EQ(f.refuse({"--json", "--json"}), "--json: given twice");
}

TEST(CommandLine, SuggestsTheNearestOption) {
  Fixture f;
  const std::string see = "; see headlab train --help";
  EXPECT_EQ(f.refuse({"--stesp", "5"}), "unknown option '--stesp' (did you mean '--steps'?)" + see);
  EXPECT_EQ(f.refuse({"--stesp=5"}), "unknown option '--stesp' (did you mean '--steps'?)" + see);
  EXPECT_EQ(f.refuse({"offsets", "-steps", "5"}), "unknown option '-steps' (did you mean '--steps'?)" + see);
  EXPECT_EQ(f.refuse({"--quite-another"}), "unknown option '--quite-another'" + see);
}

TEST(CommandLine, RefusesASecondArgument) {
  Fixture f;
  EXPECT_EQ(f.refuse({"offsets", "roles"}), "unexpected argument 'roles'; see headlab train --help");
  EXPECT_EQ(f.refuse({"offsets", "5\x1b[2J"}), "unexpected argument '5 [2J'; see headlab train --help");
}

TEST(CommandLine, WantsARequiredArgument) {
  Fixture f(true);
  EXPECT_EQ(f.refuse({"--json"}), "TASK is missing; see headlab train --help");
}

TEST(CommandLine, HelpComesBeforeMistakes) {
  Fixture f;
  EXPECT_FALSE(f.read({"--steps", "x", "--help"}));
  EXPECT_FALSE(f.read({"-h"}));
  EXPECT_EQ(f.steps, 7);
}

TEST(CommandLine, HelpShowsRangesDefaultsAndExamples) {
  EXPECT_EQ(Fixture().line.help(),
            "headlab train: does something\n\n"
            "Usage: headlab train [TASK] [options]\n\n"
            "  TASK           a task\n\n"
            "Options:\n"
            "  --steps N      training steps (1 … 100; default: 7)\n"
            "  --batch N      examples in a step (1 … 50; default: the task's)\n"
            "  --lr X         learning rate (above 0, up to 1; default: 0.5)\n"
            "  --dropout X    share dropped (0 … 1)\n"
            "  --heads N,N,…  head counts (1 … 16; default: 1,4)\n"
            "  --out DIR      folder (default: runs/TASK)\n"
            "  --json         for programs\n"
            "  -h, --help     this text\n\n"
            "Examples:\n"
            "  headlab train offsets\n"
            "      trains\n");
}

}  // namespace
}  // namespace headlab
