// A table for the terminal, built row by row and returned as text.
//
//   Ablation of offsets, 5 seeds
//   ───────────────────────────
//    heads        accuracy   n
//   ───────────────────────────
//        1   0.209 ± 0.004   5
//        8   1.000           1
//   ───────────────────────────
//   ± is the 95 % t interval.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "framework/report/terminal.h"

namespace headlab {

enum class Align : std::uint8_t { left, right, centre };

struct Column {
  std::string heading;
  Align align = Align::left;
};

/// Not thread-safe; str() changes nothing. Cells are UTF-8; control characters in them become spaces. Cells
/// of a right-aligned column that hold " ± " are lined up at the "±", with the other cells of that column to
/// its left.
class Table {
 public:
  /// Error: no columns.
  explicit Table(std::vector<Column> columns);

  Table& title(std::string text);
  /// Error: not one cell a column.
  Table& row(std::vector<std::string> cells);
  /// A thin line between the rows before and after it.
  Table& rule();
  /// A line under the table.
  Table& note(std::string text);

  /// Lines with a line end each and no blanks at their ends. On a terminal that is too narrow the widest
  /// left-aligned columns are shortened, down to 8 columns; with colour the title is bold and rules are dim.
  std::string str(const Terminal& terminal = {}) const;

 private:
  std::vector<Column> columns_;
  std::vector<std::optional<std::vector<std::string>>> rows_;  // an absent row is a rule
  std::optional<std::string> title_;
  std::vector<std::string> notes_;
};

}  // namespace headlab
