// A matrix drawn in the terminal (an attention map, a knock-out matrix), and a curve in one line.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "framework/report/terminal.h"

namespace headlab {

struct HeatMap {
  std::string title;           ///< a line above, if any
  std::vector<double> values;  ///< rows × columns, row by row; nan is "no value" (a blocked key)
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::vector<std::string> row_labels;     ///< none, or one a row
  std::vector<std::string> column_labels;  ///< none, or one a column
  double low = 0;                          ///< shown as the lightest or coldest; anything less too
  double high = 1;                         ///< shown as the strongest; anything more too
  bool numbers = false;                    ///< write every value with two decimals
};

/// 256 colours where the terminal has them; shades (" ░▒▓█") on another interactive Unicode terminal; else
/// one digit a cell, the value between low and high in ninths. A legend follows. A map wider than the
/// terminal first loses its column labels, then half its cell width; after that, cells are means of g × g
/// values, which the legend says. Errors: sizes that do not fit `values` or the labels; low >= high.
std::string heat_map(const HeatMap& map, const Terminal& terminal = {});

/// A curve in at most `width` characters, "▁▂▃▄▅▆▇█" or ".:-=+*#@" in ASCII, from its least to its largest
/// finite value, or over the values of `scale`, so that several curves can be compared; longer curves are
/// averaged in equal pieces; nan leaves a blank. Error: width < 1.
struct Scale {
  double low = 0, high = 1;
};
std::string sparkline(std::span<const double> values, std::int64_t width, const Terminal& terminal = {},
                      std::optional<Scale> scale = {});

}  // namespace headlab
