#include "framework/report/table.h"

#include <gtest/gtest.h>

#include "framework/core/check.h"
#include "framework/report/format.h"

namespace headlab {
namespace {

Table ladder() {
  Table table({{"heads", Align::right}, {"accuracy", Align::right}, {"n", Align::right}});
  table.title("Ablation of offsets, 5 seeds");
  table.row({"1", "0.209 ± 0.004", "5"}).row({"8", "1.000", "1"});
  table.note("± is the 95 % t interval.");
  return table;
}

TEST(Table, LinesUpNumbersAndIntervals) {
  EXPECT_EQ(ladder().str(),
            "Ablation of offsets, 5 seeds\n"
            "───────────────────────────\n"
            " heads        accuracy   n\n"
            "───────────────────────────\n"
            "     1   0.209 ± 0.004   5\n"
            "     8   1.000           1\n"
            "───────────────────────────\n"
            "± is the 95 % t interval.\n");
}

TEST(Table, IsPlainAsciiWhereItMustBe) {
  EXPECT_EQ(ladder().str({.unicode = false}),
            "Ablation of offsets, 5 seeds\n"
            "-----------------------------\n"
            " heads          accuracy   n\n"
            "-----------------------------\n"
            "     1   0.209 +/- 0.004   5\n"
            "     8   1.000             1\n"
            "-----------------------------\n"
            "+/- is the 95 % t interval.\n");
}

TEST(Table, HasABoldTitleAndDimRulesInColour) {
  Table table({{"head"}});
  table.title("Roles").row({"0"});
  EXPECT_EQ(table.str({.colour = true}),
            "\x1b[1mRoles\x1b[0m\n"
            "\x1b[2m──────\x1b[0m\n"
            "\x1b[1m head\x1b[0m\n"
            "\x1b[2m──────\x1b[0m\n"
            " 0\n"
            "\x1b[2m──────\x1b[0m\n");
}

TEST(Table, AlignsLeftRightAndCentreByDisplayWidth) {
  Table table({{"name", Align::left}, {"é", Align::centre}, {"size", Align::right}});
  table.row({"日本", "xyz", "1"}).rule().row({"a", "b", "36 352"});
  EXPECT_EQ(table.str(),
            "─────────────────────\n"
            " name    é      size\n"
            "─────────────────────\n"
            " 日本   xyz        1\n"
            "─────────────────────\n"
            " a       b    36 352\n"
            "─────────────────────\n");
}

TEST(Table, WithoutRowsIsItsHeadings) {
  EXPECT_EQ(Table({{"a"}, {"b"}}).str(),
            "───────\n"
            " a   b\n"
            "───────\n"
            "───────\n");
}

TEST(Table, ShortensTheWidestTextOnANarrowTerminal) {
  Table table({{"task"}, {"what it shows"}, {"steps", Align::right}});
  table.row({"offsets", "the ladder: one look-up per head", "600"});
  EXPECT_EQ(table.str({.width = 40}),
            "────────────────────────────────────────\n"
            " task      what it shows          steps\n"
            "────────────────────────────────────────\n"
            " offsets   the ladder: one loo…     600\n"
            "────────────────────────────────────────\n");
  EXPECT_EQ(table.str({.width = 200}), table.str());
  // Numbers are never cut, and 8 columns stay of a text.
  EXPECT_NE(table.str({.width = 3}).find(" offsets   the lad…     600\n"), std::string::npos);
}

TEST(Table, KeepsControlCharactersOut) {
  Table table({{"run"}});
  table.row({"a\nb\x1b[2J"});
  EXPECT_NE(table.str().find("\n a b [2J\n"), std::string::npos);
}

TEST(Table, RefusesRowsThatDoNotFit) {
  Table table({{"a"}, {"b"}});
  try {
    table.row({"1"});
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "table: a row of 1 cells for 2 columns");
  }
  EXPECT_THROW(Table({}), Error);
}

}  // namespace
}  // namespace headlab
