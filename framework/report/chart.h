// Pictures as SVG: curves with bands and points, and matrices. Text stays text; colours follow the page's
// style sheet where the picture is part of one, and are the same without it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace headlab {

struct ChartPoint {
  double x = 0, y = 0;
};

/// A line, perhaps with a band around it and single points beside it.
struct ChartSeries {
  std::string name = {};                    ///< in the legend; none without a name
  std::vector<ChartPoint> line = {};        ///< not finite: a gap
  std::vector<double> low = {}, high = {};  ///< the band at each point of the line, or none
  std::vector<ChartPoint> points = {};      ///< such as single seeds
  bool dashed = false;
};

struct ChartMark {
  double x = 0;
  std::string text = {};
};

struct Chart {
  std::string title = {}, x_label = {}, y_label = {};
  bool log_x = false;                             ///< needs x > 0
  std::vector<double> x_ticks = {};               ///< by itself where there are none
  std::optional<double> y_low = {}, y_high = {};  ///< by the data where absent
  std::vector<ChartSeries> series = {};  ///< colours by place, eight of them, safe for the colour-blind
  std::vector<ChartMark> marks = {};     ///< upright lines
};

/// Error: a point with x ≤ 0 on a logarithmic axis; a band of another length than its line.
std::string chart_svg(const Chart& chart);

struct MatrixPicture {
  std::string title = {};
  std::vector<std::string> rows = {}, columns = {};  ///< labels
  std::vector<double> values = {};                   ///< row by row; not finite: no value
  std::vector<double> half_widths = {};              ///< of an interval around each, or none at all
  double low = 0, high = 1;                          ///< the ends of the scale; beyond them the colour stays
  bool diverging = false;  ///< two hues away from 0, which is in the middle of the scale
  int decimals = 2;        ///< of the numbers in the cells
};

/// Error: sizes that do not fit; low ≥ high.
std::string matrix_svg(const MatrixPicture& matrix);

/// A picture as a file of its own: with the style that a page would give it.
std::string svg_file(const std::string& svg);

}  // namespace headlab
