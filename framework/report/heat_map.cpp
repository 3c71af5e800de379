#include "framework/report/heat_map.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "framework/core/check.h"
#include "framework/report/format.h"

namespace headlab {

namespace {

enum class Ink : std::uint8_t { colour, shades, digits };

// From dark grey through violet and red to light yellow, each lighter than the one before.
constexpr std::array<int, 12> palette{235, 17, 54, 91, 126, 161, 197, 203, 209, 215, 221, 228};
constexpr std::array<std::string_view, 5> shade{" ", "░", "▒", "▓", "█"};
constexpr std::string_view ascii_curve = ".:-=+*#@";
constexpr std::array<std::string_view, 8> curve{"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};

/// 0 … levels-1; the value is not nan.
std::size_t level_of(double value, double low, double high, std::size_t levels) {
  const double share = std::clamp((value - low) / (high - low), 0.0, 1.0);
  return static_cast<std::size_t>(std::lround(share * static_cast<double>(levels - 1)));
}

/// The mean of the values that are there, nan if none is.
class Mean {
 public:
  void add(double value) {
    if (std::isnan(value)) return;
    sum_ += value;
    ++count_;
  }
  double value() const { return count_ ? sum_ / count_ : std::nan(""); }

 private:
  double sum_ = 0;
  int count_ = 0;
};

/// The map with every group × group block averaged; the labels are those of the first of each block.
HeatMap averaged(const HeatMap& map, std::int64_t group) {
  HeatMap small = map;
  small.rows = (map.rows + group - 1) / group;
  small.columns = (map.columns + group - 1) / group;
  small.values.clear();
  small.row_labels.clear();
  small.column_labels.clear();
  for (std::int64_t r = 0; r < map.rows; r += group) {
    if (!map.row_labels.empty()) small.row_labels.push_back(map.row_labels[static_cast<std::size_t>(r)]);
    for (std::int64_t c = 0; c < map.columns; c += group) {
      Mean mean;
      for (std::int64_t i = r; i < std::min(r + group, map.rows); ++i) {
        for (std::int64_t j = c; j < std::min(c + group, map.columns); ++j)
          mean.add(map.values[static_cast<std::size_t>(i * map.columns + j)]);
      }
      small.values.push_back(mean.value());
    }
  }
  return small;
}

std::string cell_text(const HeatMap& map, double value, Ink ink, std::int64_t width) {
  const bool absent = std::isnan(value);
  std::string text;
  if (map.numbers) {
    text = padded_left(absent ? "." : fixed(value, 2), width);
  } else if (ink == Ink::digits) {
    text = padded_left(absent ? "." : fmt::format("{}", level_of(value, map.low, map.high, 10)), width);
  } else if (ink == Ink::shades) {
    text = repeated(absent ? "·" : shade[level_of(value, map.low, map.high, shade.size())], width);
  } else {
    text = repeated(" ", width);
  }
  if (ink != Ink::colour || absent) return text;
  const std::size_t level = level_of(value, map.low, map.high, palette.size());
  const int ink_colour = level < palette.size() / 2 ? 255 : 16;
  const std::string front = map.numbers ? fmt::format("38;5;{};", ink_colour) : "";
  return fmt::format("\x1b[{}48;5;{}m{}\x1b[0m", front, palette[level], text);
}

std::string legend(const HeatMap& map, Ink ink, std::int64_t group, const Terminal& terminal) {
  std::string text;
  const std::string low = fixed(map.low, 2), high = fixed(map.high, 2);
  if (ink == Ink::colour) {
    text = low + " ";
    for (const int colour : palette) text += fmt::format("\x1b[48;5;{}m \x1b[0m", colour);
    text += " " + high;
  } else if (ink == Ink::shades && !map.numbers) {
    text = low + " ";
    for (const std::string_view s : shade) text += s;
    text += " " + high;
  } else if (!map.numbers) {
    text = fmt::format("0 = {}, 9 = {}", low, high);
  }
  if (group > 1)
    text += fmt::format("{}each cell is the mean of {} {} {}", text.empty() ? "" : ", ", group,
                        terminal.unicode ? "×" : "x", group);
  return text.empty() ? text : text + "\n";
}

void validate(const HeatMap& map) {
  check(map.rows >= 0 && map.columns >= 0 && std::ssize(map.values) == map.rows * map.columns, "heat_map",
        "{} values for {} rows and {} columns", map.values.size(), map.rows, map.columns);
  check(map.row_labels.empty() || std::ssize(map.row_labels) == map.rows, "heat_map", "{} labels for {} rows",
        map.row_labels.size(), map.rows);
  check(map.column_labels.empty() || std::ssize(map.column_labels) == map.columns, "heat_map",
        "{} labels for {} columns", map.column_labels.size(), map.columns);
  check(map.low < map.high && std::isfinite(map.high - map.low), "heat_map", "low {} is not under high {}",
        map.low, map.high);
}

std::int64_t widest(const std::vector<std::string>& labels) {
  std::int64_t width = 0;
  for (const std::string& label : labels) width = std::max(width, display_width(label));
  return width;
}

}  // namespace

std::string heat_map(const HeatMap& given, const Terminal& terminal) {
  validate(given);
  const Ink ink = terminal.colour                            ? Ink::colour
                  : terminal.interactive && terminal.unicode ? Ink::shades
                                                             : Ink::digits;
  HeatMap map = given;
  for (std::string& label : map.row_labels) label = shown_on(terminal, label);
  for (std::string& label : map.column_labels) label = shown_on(terminal, label);
  const std::int64_t margin = map.row_labels.empty() ? 0 : widest(map.row_labels) + 1;
  const std::int64_t room = terminal.width > 0 ? std::max<std::int64_t>(terminal.width - margin, 1) : 0;
  const auto fits = [&](std::int64_t cell) { return room == 0 || cell * map.columns <= room; };

  const std::int64_t plain_cell = map.numbers ? 6 : 2;
  std::int64_t cell = std::max(plain_cell, map.column_labels.empty() ? 0 : widest(map.column_labels) + 1);
  std::int64_t group = 1;
  if (!fits(cell)) {
    map.column_labels.clear();
    cell = plain_cell;
  }
  if (!fits(cell)) {
    map.numbers = false;
    cell = fits(2) ? 2 : 1;
  }
  if (!fits(cell)) {
    group = (map.columns + room - 1) / room;
    map = averaged(map, group);
  }

  std::string text;
  if (!map.title.empty()) text += shown_on(terminal, map.title) + "\n";
  const auto end_line = [&] {
    if (ink == Ink::digits) text.erase(text.find_last_not_of(' ') + 1);
    text += "\n";
  };
  if (!map.column_labels.empty()) {
    text += repeated(" ", margin);
    for (const std::string& label : map.column_labels) text += padded_left(label, cell);
    text.erase(text.find_last_not_of(' ') + 1);
    text += "\n";
  }
  for (std::int64_t r = 0; r < map.rows; ++r) {
    if (margin > 0) text += padded_left(map.row_labels[static_cast<std::size_t>(r)], margin - 1) + " ";
    for (std::int64_t c = 0; c < map.columns; ++c)
      text += cell_text(map, map.values[static_cast<std::size_t>(r * map.columns + c)], ink, cell);
    end_line();
  }
  return text + legend(map, ink, group, terminal);
}

std::string sparkline(std::span<const double> values, std::int64_t width, const Terminal& terminal,
                      std::optional<Scale> scale) {
  check(width >= 1, "sparkline", "width {} is not at least 1", width);
  const std::int64_t n = std::ssize(values), pieces = std::min(n, width);
  std::vector<double> heights;
  for (std::int64_t piece = 0; piece < pieces; ++piece) {
    Mean mean;
    for (std::int64_t i = piece * n / pieces; i < (piece + 1) * n / pieces; ++i) {
      const double value = values[static_cast<std::size_t>(i)];
      if (std::isfinite(value)) mean.add(value);
    }
    heights.push_back(mean.value());
  }
  double low = HUGE_VAL, high = -HUGE_VAL;
  for (const double height : heights) {
    if (std::isnan(height)) continue;
    low = std::min(low, height);
    high = std::max(high, height);
  }
  if (scale) {
    low = scale->low;
    high = scale->high;
  }
  std::string line;
  for (const double height : heights) {
    if (std::isnan(height)) {
      line += ' ';
      continue;
    }
    const std::size_t level = low < high ? level_of(height, low, high, curve.size()) : curve.size() / 2;
    if (terminal.unicode)
      line += curve[level];
    else
      line += ascii_curve[level];
  }
  return line;
}

}  // namespace headlab
