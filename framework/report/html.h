// Pieces of an HTML page. Pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "framework/report/table.h"

namespace headlab {

/// For text and attribute values: & < > " ' and control characters are escaped.
std::string escaped(std::string_view text);

/// A number as people read it that keeps its exact value: <data value="0.20705">0.207</data>. "–" where it is
/// not finite.
std::string html_number(double value, int decimals = 3);
/// With three significant digits: "0.000123", "1.23e-07".
std::string html_digits(double value);
/// A p value; "< 0.001" below that.
std::string html_p(double value);
std::string html_whole(std::int64_t value);

/// A table whose cells are HTML already. Wider than the page, it scrolls by itself.
class HtmlTable {
 public:
  explicit HtmlTable(std::string caption, std::vector<Column> columns)
      : caption_(std::move(caption)), columns_(std::move(columns)) {}
  /// The first cell names the row. Error: not one cell a column.
  HtmlTable& row(std::vector<std::string> cells);
  HtmlTable& note(std::string html);
  bool empty() const { return rows_.empty(); }
  std::string str() const;

 private:
  std::string caption_;
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
  std::vector<std::string> notes_;
};

/// The first tag of a picture of a kind, which is a class of the style sheet, and its title, which is its
/// text for those who do not see it.
std::string svg_opening(std::string_view kind, double width, double height, std::string_view title);

/// What is folded away until somebody opens it; printed open.
std::string html_details(std::string_view summary, std::string_view body);

}  // namespace headlab
