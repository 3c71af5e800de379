#include <fmt/format.h>

#include "framework/report/ablation.h"
#include "framework/report/ablation_parts.h"
#include "framework/report/format.h"

namespace headlab {

using namespace ablation_parts;

namespace {

/// "lr=0.01" → "0.01".
std::string value_of(const AblationResult& result) {
  return result.setting.substr(result.setting.find('=') + 1);
}

bool any_of_all(const AblationGrid& grid, bool (*f)(const AblationLevel&)) {
  return std::any_of(grid.results.begin(), grid.results.end(),
                     [&](const AblationResult& result) { return any_level(result, f); });
}

std::string accuracies_text(const AblationGrid& grid, const Terminal& terminal) {
  const AblationResult& first = grid.results.front();
  std::vector<Field> fields = {
      field(first, "heads", [](const AblationLevel& l) { return grouped(l.heads); })};
  for (const AblationResult& result : grid.results) {
    fields.push_back(
        field(result, result.setting, [](const AblationLevel& l) { return estimate_of(l.accuracy); }));
  }
  Table table = table_of(fields);
  table.title(fmt::format("Accuracy on {} by head count and {}: {} seed{}", first.base.task, grid.option,
                          first.seeds, first.seeds == 1 ? "" : "s"));
  table.note("± is the 95 % t interval over seeds.");
  const std::string text = table.str(terminal);
  return fits(text, terminal) ? text : "";  // then the table of differences, which has all, has to do
}

std::string differences_text(const AblationGrid& grid, const Terminal& terminal) {
  const bool low = any_of_all(grid, [](const AblationLevel& l) { return l.low_rank; });
  const bool chosen = any_of_all(grid, [](const AblationLevel& l) { return l.rate.has_value(); });
  const bool tested =
      any_of_all(grid, [](const AblationLevel& l) { return l.difference && l.difference->p; });
  const AblationResult& first = grid.results.front();
  std::vector<Column> columns = {{grid.option, Align::right},
                                 {"heads", Align::right},
                                 {"n", Align::right},
                                 {"accuracy", Align::right},
                                 {fmt::format("over h={}", first.reference), Align::right}};
  if (tested) columns.push_back({"test", Align::right});
  for (const char* name : {"parameters", "d_model", "d_head"}) columns.push_back({name, Align::right});
  if (low) columns.push_back({"rank", Align::right});
  if (chosen) columns.push_back({"lr", Align::right});
  Table table(std::move(columns));
  std::int64_t comparisons = 0;
  for (const AblationResult& result : grid.results) {
    if (&result != &first) table.rule();
    for (const AblationLevel& level : result.levels) {
      std::vector<std::string> cells = {value_of(result), grouped(level.heads), grouped(level.accuracy.n),
                                        estimate_of(level.accuracy), difference_of(level)};
      if (tested) cells.push_back(test_of(level));
      for (const std::int64_t size : {level.parameters, level.d_model, level.head_size}) {
        cells.push_back(grouped(size));
      }
      if (low) cells.push_back(level.low_rank ? "low" : std::string(nothing));
      if (chosen) cells.push_back(fmt::format("{}", level.config.recipe.learning_rate));
      table.row(std::move(cells));
      comparisons += level.difference ? 1 : 0;
    }
  }
  table.title(fmt::format("Head counts at each {}, {}", grid.option,
                          first.hold == Hold::d_model && grid.option != "d-model"
                              ? held(first)
                              : fmt::format("{} held", name_of(first.hold))));
  table.note("Differences are within one value, paired by seed, with 95 % t intervals.");
  if (tested) {
    table.note(fmt::format("p is adjusted over all {} comparisons (Holm).", comparisons));
  } else if (first.seeds > 1) {
    table.note("An exact test of the differences needs 7 seeds.");
  }
  for (const AblationResult& result : grid.results) {
    if (!any_level(result, [](const AblationLevel& l) { return l.low_rank; })) continue;
    note_low_rank(table, result);
    break;
  }
  for (const AblationResult& result : grid.results) {
    if (!any_level(result, [](const AblationLevel& l) { return l.rate && l.rate->best; })) continue;
    note_rates(table, result);
    break;
  }
  return table.str(terminal);
}

}  // namespace

std::string finding(const AblationGrid& grid) {
  std::int64_t all = 0, up = 0, down = 0;
  const AblationResult* where = nullptr;
  const AblationLevel* best = nullptr;
  for (const AblationResult& result : grid.results) {
    for (const AblationLevel& level : result.levels) {
      if (level.difference && level.difference->interval) {
        ++all;
        up += direction(level) > 0 ? 1 : 0;
        down += direction(level) < 0 ? 1 : 0;
      }
      if (!level.accuracy.mean || (best != nullptr && *level.accuracy.mean <= *best->accuracy.mean)) continue;
      best = &level;
      where = &result;
    }
  }
  if (best == nullptr) return "No run has finished, so there is nothing to say yet.";
  const std::string highest =
      fmt::format("The highest mean accuracy is {} at {} with {} (n={}).", estimate_of(best->accuracy),
                  h(*best), where->setting, best->accuracy.n);
  if (all == 0) return highest + " A difference needs two shared seeds at least.";
  return fmt::format(
      "Of {} comparison{} with h={}, over all values of {}, accuracy is higher for certain in {}, lower in "
      "{}, "
      "and undecided in {}. {}",
      all, all == 1 ? "" : "s", where->reference, grid.option, up, down, all - up - down, highest);
}

std::string ablation_text(const AblationGrid& grid, const Terminal& terminal) {
  std::vector<std::string> parts = {accuracies_text(grid, terminal), differences_text(grid, terminal)};
  for (const AblationResult& result : grid.results) {
    if (result.knockout && result.picked) parts.push_back(knockout_text(result, terminal));
  }
  std::string troubles;
  for (const AblationResult& result : grid.results) troubles += failures_text(result, terminal);
  if (grid.interrupted) {
    const AblationResult& first = grid.results.front();
    troubles += sentence(stopped_text(grid.done, grid.total, first.folder, first.choosing), terminal);
  }
  parts.push_back(troubles);
  std::string found;
  for (const AblationResult& result : grid.results) {
    found += sentence(fmt::format("{}: {}", result.setting, finding(result)), terminal);
  }
  parts.push_back(found);
  parts.push_back(sentence(finding(grid), terminal));
  std::erase(parts, "");
  return fmt::format("{}", fmt::join(parts, "\n"));
}

}  // namespace headlab
