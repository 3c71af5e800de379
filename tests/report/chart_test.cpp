#include "framework/report/chart.h"

#include <algorithm>
#include <limits>

#include <gtest/gtest.h>

#include "tests/support/errors.h"

namespace headlab {
namespace {

TEST(Chart, LeavesAGapWhereANumberIsMissing) {
  const double none = std::numeric_limits<double>::quiet_NaN();
  const std::string svg =
      chart_svg({.title = "t", .series = {{.line = {{1, 1}, {2, none}, {3, 2}, {4, 1}}}}});
  const std::size_t path = svg.find("<path");
  ASSERT_NE(path, std::string::npos);
  const std::string drawn = svg.substr(path, svg.find("/>", path) - path);
  EXPECT_EQ(std::count(drawn.begin(), drawn.end(), 'M'), 2);
  EXPECT_EQ(svg.find("nan"), std::string::npos);
}

TEST(Chart, NumbersALogarithmicAxisByItself) {
  const std::string svg = chart_svg({.log_x = true, .series = {{.line = {{1, 0}, {600, 1}}}}});
  for (const char* tick :
       {">1</text>", ">2</text>", ">5</text>", ">10</text>", ">200</text>", ">500</text>"}) {
    EXPECT_NE(svg.find(tick), std::string::npos) << tick;
  }
  EXPECT_EQ(svg.find(">400</text>"), std::string::npos);
}

TEST(Chart, RefusesWhatItCannotDraw) {
  EXPECT_EQ(error_of([] {
              chart_svg({.log_x = true, .series = {{.line = {{0, 1}}}}});
            }),
            "chart: x is 0 on a logarithmic axis");
  EXPECT_EQ(error_of([] {
              chart_svg({.series = {{.line = {{0, 1}}, .low = {1, 2}, .high = {1, 2}}}});
            }),
            "chart: a band has 2 and 2 ends for 1 points");
}

TEST(Matrix, ShowsEveryValueAndLeavesOutWhatIsNone) {
  const double none = std::numeric_limits<double>::quiet_NaN();
  const std::string svg =
      matrix_svg({.title = "t", .rows = {"r"}, .columns = {"a", "b"}, .values = {0.25, none}});
  EXPECT_NE(svg.find("r · a: 0.250"), std::string::npos);
  EXPECT_EQ(svg.find("r · b"), std::string::npos);
  EXPECT_EQ(error_of([] { matrix_svg({.rows = {"r"}, .columns = {"a"}, .values = {}}); }),
            "matrix: 0 values for 1 rows and 1 columns");
}

TEST(Matrix, IsAsWideAsItsTitle) {
  const auto width_of = [](const std::string& title) {
    const std::string svg = matrix_svg({.title = title, .rows = {"r"}, .columns = {"a"}, .values = {1}});
    return std::stod(svg.substr(svg.find("width=\"") + 7));
  };
  EXPECT_GE(width_of(std::string(41, 'm')), 41 * 8);
  EXPECT_LT(width_of("t"), 110);
}

}  // namespace
}  // namespace headlab
