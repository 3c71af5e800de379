#include "framework/report/terminal.h"

#include <gtest/gtest.h>

namespace headlab {
namespace {

TerminalFacts on_terminal() {
  TerminalFacts facts;
  facts.lang = "C.UTF-8";
  facts.term = "xterm";
  facts.is_terminal = true;
  facts.window_width = 120;
  return facts;
}

TEST(Terminal, HasEverythingOnAModernOne) {
  const Terminal terminal = terminal_from(on_terminal());
  EXPECT_TRUE(terminal.unicode);
  EXPECT_TRUE(terminal.interactive);
  EXPECT_TRUE(terminal.colour);
  EXPECT_EQ(terminal.width, 120);
}

TEST(Terminal, HasNoColourAndNoWidthWhenItIsAFile) {
  TerminalFacts facts = on_terminal();
  facts.is_terminal = false;
  facts.columns = "80";
  const Terminal terminal = terminal_from(facts);
  EXPECT_TRUE(terminal.unicode);
  EXPECT_FALSE(terminal.interactive);
  EXPECT_FALSE(terminal.colour);
  EXPECT_EQ(terminal.width, 0);
}

TEST(Terminal, HonoursNoColor) {
  TerminalFacts facts = on_terminal();
  facts.no_color = std::string(1, '1');
  EXPECT_FALSE(terminal_from(facts).colour);
  facts.no_color.clear();
  EXPECT_TRUE(terminal_from(facts).colour);
}

TEST(Terminal, FallsBackToAsciiWithoutUtf8OrOnADumbOne) {
  TerminalFacts facts = on_terminal();
  facts.lc_all = "C.ISO-8859-1";
  EXPECT_FALSE(terminal_from(facts).unicode);
  facts.lc_all.clear();
  EXPECT_TRUE(terminal_from(facts).unicode);
  facts.lc_ctype = "POSIX";
  EXPECT_FALSE(terminal_from(facts).unicode);
  facts.lc_all = "de_DE.utf8";
  EXPECT_TRUE(terminal_from(facts).unicode);
  facts.term = "dumb";
  EXPECT_FALSE(terminal_from(facts).unicode);
  EXPECT_FALSE(terminal_from(facts).colour);
  EXPECT_FALSE(terminal_from({}).unicode);
}

TEST(Terminal, KnowsTheOnesWithoutManyColours) {
  TerminalFacts facts = on_terminal();
  for (const char* term : {"", "linux", "vt100", "vt220"}) {
    facts.term = term;
    EXPECT_FALSE(terminal_from(facts).colour) << term;
    EXPECT_TRUE(terminal_from(facts).unicode) << term;
  }
}

TEST(Terminal, TakesItsWidthFromColumnsOrGuesses) {
  TerminalFacts facts = on_terminal();
  facts.window_width = 0;
  EXPECT_EQ(terminal_from(facts).width, 80);
  facts.columns = "132";
  EXPECT_EQ(terminal_from(facts).width, 132);
  for (const char* columns : {"", "x", "-5", "0", "99999999999999999999"}) {
    facts.columns = columns;
    EXPECT_EQ(terminal_from(facts).width, 80) << columns;
  }
}

TEST(Terminal, MeasuresTextInColumns) {
  EXPECT_EQ(display_width(""), 0);
  EXPECT_EQ(display_width("heads"), 5);
  EXPECT_EQ(display_width("0.209 ± 0.004"), 13);
  EXPECT_EQ(display_width("e\u0301"), 1);
  EXPECT_EQ(display_width("日本"), 4);
  EXPECT_EQ(display_width("🙂"), 2);
  EXPECT_EQ(display_width("─█Δ"), 3);
  EXPECT_EQ(display_width("\xff\xc3"), 2);
  EXPECT_EQ(display_width("\xe2\x94"), 2);
}

TEST(Terminal, TakesTheSpellOutOfControlCharacters) {
  EXPECT_EQ(printable("a\nb\tc\x1b[31md\x7f"), "a b c [31md ");
  EXPECT_EQ(printable("é\u0085x"), "é x");
}

TEST(Terminal, WritesAsciiForWhatItKnows) {
  EXPECT_EQ(to_ascii("0.209 ± 0.004 … 1 × 2 ≥ 3 → Δ"), "0.209 +/- 0.004 ... 1 x 2 >= 3 -> D");
  EXPECT_EQ(to_ascii("日e\u0301\xff"), "?e?");
  EXPECT_EQ(shown_on({.unicode = false}, "±\n"), "+/- ");
  EXPECT_EQ(shown_on({}, "±\n"), "± ");
}

TEST(Terminal, ShortensAndPads) {
  EXPECT_EQ(shortened("attention", 9), "attention");
  EXPECT_EQ(shortened("attention", 5), "atte…");
  EXPECT_EQ(shortened("attention", 5, false), "at...");
  EXPECT_EQ(shortened("日本語", 5), "日本…");
  EXPECT_EQ(shortened("日本語", 4), "日…");
  EXPECT_EQ(shortened("attention", 1), "…");
  EXPECT_EQ(shortened("attention", 0), "");
  EXPECT_EQ(shortened("attention", 2, false), "..");
  EXPECT_EQ(padded_left("±", 3), "  ±");
  EXPECT_EQ(padded_right("日", 3), "日 ");
  EXPECT_EQ(padded_left("long", 3), "long");
}

}  // namespace
}  // namespace headlab
