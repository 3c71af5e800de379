// Pieces that the reports of ablations share. Internal to framework/report.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "framework/report/table.h"
#include "framework/report/terminal.h"
#include "framework/sweep/ablation.h"

namespace headlab::ablation_parts {

inline constexpr std::string_view nothing = "–";

std::string estimate_of(const Summary& summary, int decimals = 3);
/// "+0.610 ± 0.128", or nothing for the reference.
std::string difference_of(const AblationLevel& level);
/// +1 or -1 where the difference to the reference is there for certain, else 0.
int direction(const AblationLevel& level);
/// "p = 0.016", or why there is none; nothing for the reference.
std::string test_of(const AblationLevel& level);
/// "h=8".
std::string h(const AblationLevel& level);
/// "d_head held at 8"
std::string held(const AblationResult& result);

/// A column with its cells.
struct Field {
  Column column;
  std::vector<std::string> cells;
};
Table table_of(const std::vector<Field>& fields);
template <class F>
Field field(const AblationResult& result, std::string heading, const F& cell, Align align = Align::right) {
  Field made{{std::move(heading), align}, {}};
  for (const AblationLevel& level : result.levels) made.cells.push_back(cell(level));
  return made;
}
template <class F>
bool any_level(const AblationResult& result, const F& f) {
  return std::any_of(result.levels.begin(), result.levels.end(), f);
}

/// Whether every line has room.
bool fits(const std::string& text, const Terminal& terminal);
/// Text as lines that the terminal has room for.
std::string sentence(const std::string& text, const Terminal& terminal);

/// Notes under a table that shows such columns.
void note_low_rank(Table& table, const AblationResult& result);
void note_rates(Table& table, const AblationResult& result);

std::string curves_text(const AblationResult& result, const Terminal& terminal);
std::string published_text(const AblationResult& result, const Terminal& terminal);
std::string knockout_text(const AblationResult& result, const Terminal& terminal);
/// Where a sweep was stopped.
std::string stopped_text(std::int64_t done, std::int64_t total, const std::filesystem::path& folder,
                         bool choosing);
std::string failures_text(const AblationResult& result, const Terminal& terminal);

}  // namespace headlab::ablation_parts
