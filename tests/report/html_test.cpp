#include "framework/report/html.h"

#include <limits>

#include <gtest/gtest.h>

#include "tests/support/errors.h"

namespace headlab {
namespace {

TEST(Html, TextCannotBecomeMarkup) {
  EXPECT_EQ(escaped("<a href=\"x\">'&'</a>\n"), "&lt;a href=&quot;x&quot;&gt;&#39;&amp;&#39;&lt;/a&gt;↵");
}

TEST(Html, ANumberKeepsItsExactValue) {
  EXPECT_EQ(html_number(0.20705, 3), R"(<data value="0.20705">0.207</data>)");
  EXPECT_EQ(html_number(std::numeric_limits<double>::quiet_NaN()), "–");
  EXPECT_EQ(html_p(0.00012), R"(<data value="0.00012">&lt; 0.001</data>)");
  EXPECT_EQ(html_digits(0.00012345), R"(<data value="0.00012345">0.000123</data>)");
}

TEST(Html, ARowHasACellForEachColumn) {
  HtmlTable table("t", {{"a"}, {"b"}});
  EXPECT_EQ(error_of([&] { table.row({"1"}); }), "html table: a row has 1 cells for 2 columns");
}

}  // namespace
}  // namespace headlab
