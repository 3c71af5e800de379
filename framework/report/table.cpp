#include "framework/report/table.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "framework/core/check.h"

namespace headlab {

namespace {

constexpr std::int64_t gap = 3;        // columns between two cells
constexpr std::int64_t narrowest = 8;  // a shortened column

using Cells = std::vector<std::string>;

/// Lines the cells of a right-aligned column up at their "±" by padding them on the right.
void line_up(std::vector<Cells>& rows, std::size_t column, std::string_view plus_minus) {
  std::int64_t tail = 0;
  const auto tail_of = [plus_minus](const std::string& cell) {
    const std::size_t at = cell.find(plus_minus);
    return at == std::string::npos ? 0 : display_width(std::string_view(cell).substr(at));
  };
  for (const Cells& row : rows) {
    if (!row.empty()) tail = std::max(tail, tail_of(row[column]));
  }
  for (Cells& row : rows) {
    if (!row.empty()) row[column] += repeated(" ", tail - tail_of(row[column]));
  }
}

void shrink(std::vector<std::int64_t>& widths, const std::vector<Column>& columns, std::int64_t excess) {
  while (excess > 0) {
    std::int64_t* widest = nullptr;
    for (std::size_t i = 0; i < widths.size(); ++i) {
      const bool may = columns[i].align == Align::left && widths[i] > narrowest;
      if (may && (!widest || widths[i] > *widest)) widest = &widths[i];
    }
    if (!widest) return;
    --*widest;
    --excess;
  }
}

std::string aligned(const std::string& cell, std::int64_t width, Align align) {
  if (align == Align::left) return padded_right(cell, width);
  if (align == Align::right) return padded_left(cell, width);
  const std::int64_t spare = std::max<std::int64_t>(width - display_width(cell), 0);
  return repeated(" ", spare / 2) + cell + repeated(" ", spare - spare / 2);
}

std::string without_trailing_blanks(std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

}  // namespace

Table::Table(std::vector<Column> columns) : columns_(std::move(columns)) {
  check(!columns_.empty(), "table", "it needs at least one column");
}

Table& Table::title(std::string text) {
  title_ = std::move(text);
  return *this;
}

Table& Table::row(std::vector<std::string> cells) {
  check(cells.size() == columns_.size(), "table", "a row of {} cells for {} columns", cells.size(),
        columns_.size());
  rows_.emplace_back(std::move(cells));
  return *this;
}

Table& Table::rule() {
  rows_.emplace_back(std::nullopt);
  return *this;
}

Table& Table::note(std::string text) {
  notes_.push_back(std::move(text));
  return *this;
}

std::string Table::str(const Terminal& terminal) const {
  std::vector<Cells> body;  // an empty row is a rule
  for (const auto& row : rows_) {
    Cells cells;
    if (row) {
      for (const std::string& cell : *row) cells.push_back(shown_on(terminal, cell));
    }
    body.push_back(std::move(cells));
  }
  Cells headings;
  std::vector<std::int64_t> widths;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    headings.push_back(shown_on(terminal, columns_[i].heading));
    if (columns_[i].align == Align::right) line_up(body, i, terminal.unicode ? " ± " : " +/- ");
    widths.push_back(display_width(headings[i]));
    for (const Cells& row : body) {
      if (!row.empty()) widths[i] = std::max(widths[i], display_width(row[i]));
    }
  }
  const auto line_width = [&] {
    return std::accumulate(widths.begin(), widths.end(), gap * (std::ssize(widths) - 1) + 2);
  };
  if (terminal.width > 0) shrink(widths, columns_, line_width() - terminal.width);

  const std::string bold = terminal.colour ? "\x1b[1m" : "", dim = terminal.colour ? "\x1b[2m" : "";
  const std::string plain = terminal.colour ? "\x1b[0m" : "";
  const std::string rule = dim + repeated(terminal.unicode ? "─" : "-", line_width()) + plain + "\n";
  const auto line_of = [&](const Cells& cells) {
    std::string line = " ";
    for (std::size_t i = 0; i < cells.size(); ++i) {
      if (i > 0) line += repeated(" ", gap);
      line += aligned(shortened(cells[i], widths[i], terminal.unicode), widths[i], columns_[i].align);
    }
    return without_trailing_blanks(std::move(line));
  };

  std::string text;
  if (title_) text += bold + shown_on(terminal, *title_) + plain + "\n";
  text += rule + bold + line_of(headings) + plain + "\n" + rule;
  for (const Cells& row : body) text += row.empty() ? rule : line_of(row) + "\n";
  text += rule;
  for (const std::string& note : notes_) text += shown_on(terminal, note) + "\n";
  return text;
}

}  // namespace headlab
