#include "framework/report/heat_map.h"

#include <cmath>

#include <gtest/gtest.h>

#include "framework/core/check.h"

namespace headlab {
namespace {

const double nan = std::nan("");
const Terminal colours{.interactive = true, .colour = true};
const Terminal shades{.interactive = true};

HeatMap causal() {
  HeatMap map;
  map.title = "blocks.0.attn, head 3";
  map.rows = 3;
  map.columns = 3;
  map.values = {1, nan, nan, 0.5, 0.5, nan, 0, 0.25, 0.75};
  map.row_labels = {"t0", "t1", "t2"};
  map.column_labels = {"0", "1", "2"};
  return map;
}

TEST(HeatMap, IsDigitsInAFile) {
  const std::string expected =
      "blocks.0.attn, head 3\n"
      "    0 1 2\n"
      "t0  9 . .\n"
      "t1  5 5 .\n"
      "t2  0 2 7\n"
      "0 = 0.00, 9 = 1.00\n";
  EXPECT_EQ(heat_map(causal()), expected);
  EXPECT_EQ(heat_map(causal(), {.unicode = false, .interactive = true, .width = 80}), expected);
}

TEST(HeatMap, IsShadesOnATerminalWithoutColours) {
  EXPECT_EQ(heat_map(causal(), shades),
            "blocks.0.attn, head 3\n"
            "    0 1 2\n"
            "t0 ██····\n"
            "t1 ▒▒▒▒··\n"
            "t2   ░░▓▓\n"
            "0.00  ░▒▓█ 1.00\n");
}

TEST(HeatMap, IsColouredOnATerminalThatCan) {
  HeatMap map;
  map.rows = 1;
  map.columns = 3;
  map.values = {0, 1, nan};
  const std::string text = heat_map(map, colours);
  EXPECT_EQ(text.substr(0, text.find('\n')), "\x1b[48;5;235m  \x1b[0m\x1b[48;5;228m  \x1b[0m  ");
  EXPECT_EQ(text.substr(text.find('\n') + 1, 21), "0.00 \x1b[48;5;235m \x1b[0m");
  EXPECT_EQ(text.substr(text.size() - 6), " 1.00\n");
}

TEST(HeatMap, CanWriteItsNumbers) {
  HeatMap map;
  map.rows = 2;
  map.columns = 2;
  map.values = {0.97, -0.004, nan, -0.5};
  map.row_labels = {"head 0", "head 1"};
  map.column_labels = {"t-1", "t-2"};
  map.numbers = true;
  EXPECT_EQ(heat_map(map),
            "          t-1   t-2\n"
            "head 0   0.97  0.00\n"
            "head 1      . -0.50\n");
  const std::string coloured = heat_map(map, colours);
  EXPECT_NE(coloured.find("\x1b[38;5;16;48;5;228m  0.97\x1b[0m"), std::string::npos);
  EXPECT_NE(coloured.find("\x1b[38;5;255;48;5;235m  0.00\x1b[0m"), std::string::npos);
}

TEST(HeatMap, ClampsToItsRange) {
  HeatMap map;
  map.rows = 1;
  map.columns = 5;
  map.values = {-9, -1, 0, 1, HUGE_VAL};
  map.low = -1;
  EXPECT_EQ(heat_map(map), " 0 0 5 9 9\n0 = -1.00, 9 = 1.00\n");
}

TEST(HeatMap, NarrowsThenAveragesOnASmallTerminal) {
  HeatMap map;
  map.rows = 2;
  map.columns = 5;
  map.values = {0, 1, nan, 1, 1, 0, 1, nan, 1, 1};
  map.column_labels = {"one", "two", "three", "four", "five"};
  map.row_labels = {"a", "b"};
  EXPECT_EQ(heat_map(map, {.width = 32}),
            "     one   two three  four  five\n"
            "a      0     9     .     9     9\n"
            "b      0     9     .     9     9\n"
            "0 = 0.00, 9 = 1.00\n");
  EXPECT_EQ(heat_map(map, {.width = 12}), "a  0 9 . 9 9\nb  0 9 . 9 9\n0 = 0.00, 9 = 1.00\n");
  EXPECT_EQ(heat_map(map, {.width = 7}), "a 09.99\nb 09.99\n0 = 0.00, 9 = 1.00\n");
  EXPECT_EQ(heat_map(map, {.width = 5}), "a 599\n0 = 0.00, 9 = 1.00, each cell is the mean of 2 × 2\n");
  EXPECT_EQ(heat_map(map, {.unicode = false, .width = 1}),
            "a 7\n0 = 0.00, 9 = 1.00, each cell is the mean of 5 x 5\n");
}

TEST(HeatMap, MayBeEmpty) { EXPECT_EQ(heat_map(HeatMap{}), "0 = 0.00, 9 = 1.00\n"); }

TEST(HeatMap, RefusesSizesThatDoNotFit) {
  HeatMap map = causal();
  map.columns = 4;
  EXPECT_THROW(heat_map(map), Error);
  map = causal();
  map.row_labels.pop_back();
  EXPECT_THROW(heat_map(map), Error);
  map = causal();
  map.column_labels.pop_back();
  EXPECT_THROW(heat_map(map), Error);
  map = causal();
  map.high = map.low;
  EXPECT_THROW(heat_map(map), Error);
}

TEST(Sparkline, DrawsFromLeastToLargest) {
  const std::vector<double> rising{0, 1, 2, 3, 4, 5, 6, 7};
  EXPECT_EQ(sparkline(rising, 20), "▁▂▃▄▅▆▇█");
  EXPECT_EQ(sparkline(rising, 20, {.unicode = false}), ".:-=+*#@");
  EXPECT_EQ(sparkline(rising, 4), "▁▃▆█");
  EXPECT_EQ(sparkline(std::vector<double>{2, nan, 2}, 9), "▅ ▅");
  EXPECT_EQ(sparkline(std::vector<double>{1, HUGE_VAL, 2}, 9), "▁ █");
  EXPECT_EQ(sparkline({}, 9), "");
  EXPECT_THROW(sparkline(rising, 0), Error);
}

}  // namespace
}  // namespace headlab
