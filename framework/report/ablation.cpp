#include "framework/report/ablation.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "framework/heads/target_score.h"
#include "framework/report/format.h"
#include "framework/report/heat_map.h"
#include "framework/report/table.h"

namespace headlab {
namespace {

constexpr std::int64_t most_points = 8;   // seeds that are shown one by one
constexpr std::int64_t text_width = 100;  // of sentences, where the terminal sets no limit
constexpr std::string_view nothing = "–";

std::string estimate_of(const Summary& summary, int decimals = 3) {
  return estimate(summary.mean,
                  summary.interval ? std::optional(summary.interval->half_width()) : std::nullopt, decimals);
}

std::string difference_of(const AblationLevel& level) {
  if (!level.difference) return std::string(nothing);
  const Comparison& difference = *level.difference;
  return estimate(difference.mean,
                  difference.interval ? std::optional(difference.interval->half_width()) : std::nullopt, 3,
                  true);
}

bool was_tested(const AblationLevel& level) { return level.difference && level.difference->p; }

template <class F>
bool any_level(const AblationResult& result, const F& f) {
  return std::any_of(result.levels.begin(), result.levels.end(), f);
}

/// Columns with a cell a level, put together into tables as wide as there is room for.
struct Field {
  Column column;
  std::vector<std::string> cells;
};

template <class F>
Field field(const AblationResult& result, std::string heading, const F& cell, Align align = Align::right) {
  Field made{{std::move(heading), align}, {}};
  for (const AblationLevel& level : result.levels) made.cells.push_back(cell(level));
  return made;
}

Table table_of(const std::vector<Field>& fields) {
  std::vector<Column> columns;
  for (const Field& f : fields) columns.push_back(f.column);
  Table table(std::move(columns));
  for (std::size_t row = 0; row < fields.front().cells.size(); ++row) {
    std::vector<std::string> cells;
    for (const Field& f : fields) cells.push_back(f.cells[row]);
    table.row(std::move(cells));
  }
  return table;
}

bool fits(const std::string& text, const Terminal& terminal) {
  if (terminal.width == 0) return true;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    if (display_width(std::string_view(text).substr(at, end - at)) > terminal.width) return false;
    at = end + 1;
  }
  return true;
}

std::string figures_text(const AblationResult& result, const Terminal& terminal) {
  const Field heads = field(result, "heads", [](const AblationLevel& l) { return grouped(l.heads); });
  std::vector<Field> measured = {
      heads, field(result, "n", [](const AblationLevel& l) { return grouped(l.accuracy.n); }),
      field(result, "accuracy", [](const AblationLevel& l) { return estimate_of(l.accuracy); }),
      field(result, fmt::format("over h={}", result.reference), difference_of),
      field(result, "loss", [](const AblationLevel& l) { return estimate_of(l.loss); })};
  const bool tested = any_level(result, was_tested);
  if (tested) {
    measured.push_back(field(result, "test", [](const AblationLevel& l) {
      return l.difference ? verdict(*l.difference) : std::string(nothing);
    }));
  }
  const bool prototyped = any_level(result, [](const AblationLevel& l) { return l.prototype.has_value(); });
  if (prototyped) {
    measured.push_back(field(result, "prototype", [](const AblationLevel& l) {
      return l.prototype ? fixed(*l.prototype) : std::string(nothing);
    }));
  }
  std::vector<Field> sizes = {
      field(result, "parameters", [](const AblationLevel& l) { return grouped(l.parameters); }),
      field(result, "d_head", [](const AblationLevel& l) { return grouped(l.head_size); }),
      field(result, "time",
            [](const AblationLevel& l) { return l.seconds ? duration(*l.seconds) : std::string(nothing); })};

  const auto finish = [&](Table table) {
    table.title(fmt::format("Head counts on {}: {} seed{}, {} steps", result.base.task, result.seeds,
                            result.seeds == 1 ? "" : "s", grouped(result.base.recipe.steps)));
    table.note("± is the 95 % t interval over seeds; differences are paired by seed.");
    if (!tested && result.levels.size() > 1 && result.seeds > 1) {
      table.note("An exact test of the differences needs 7 seeds.");
    }
    if (prototyped)
      table.note("prototype: mean accuracy of a prototype in PyTorch with the task's own settings.");
    return table.str(terminal);
  };
  std::vector<Field> all = measured;
  all.insert(all.end(), sizes.begin(), sizes.end());
  std::string text = finish(table_of(all));
  if (fits(text, terminal)) return text;
  sizes.insert(sizes.begin(), heads);
  return finish(table_of(measured)) + "\n" + table_of(sizes).str(terminal);
}

/// The values of every seed, or their summary where there are too many.
template <class F>
std::string points(const AblationLevel& level, const Summary& summary, int decimals, const F& value) {
  if (std::ssize(level.runs) > most_points) return estimate_of(summary, decimals == 0 ? 1 : decimals);
  std::string text;
  for (const std::optional<RunRecord>& run : level.runs) {
    const std::optional<double> number = run && !run->failure ? value(*run) : std::nullopt;
    if (!text.empty()) text += ' ';
    text += number ? fixed(*number, decimals) : std::string(nothing);
  }
  return text;
}

std::string heads_text(const AblationResult& result, const Terminal& terminal) {
  using Value = std::optional<double>;
  const auto clean = [](const RunRecord& run) {
    return run.figures ? Value(static_cast<double>(run.figures->clean_heads)) : std::nullopt;
  };
  const auto cover = [](const RunRecord& run) {
    return run.figures ? Value(static_cast<double>(run.figures->cover)) : std::nullopt;
  };
  std::vector<Field> fields = {
      field(result, "heads", [](const AblationLevel& l) { return grouped(l.heads); }),
      field(result, "confidence", [](const AblationLevel& l) { return estimate_of(l.confidence, 2); }),
      field(result, "entropy", [](const AblationLevel& l) { return estimate_of(l.normalised_entropy, 2); })};
  const std::size_t targets = result.targets.size();
  if (targets > 0) {
    fields.push_back(field(result, "clean heads",
                           [&](const AblationLevel& l) { return points(l, l.clean_heads, 0, clean); }));
    fields.push_back(field(result, fmt::format("cover of {}", targets),
                           [&](const AblationLevel& l) { return points(l, l.cover, 0, cover); }));
  }
  if (result.seeds > 1 && result.seeds <= most_points) {
    fields.push_back(field(result, "accuracy by seed", [](const AblationLevel& l) {
      return points(l, l.accuracy, 3, [](const RunRecord& run) { return Value(run.accuracy); });
    }));
  }
  Table table = table_of(fields);
  table.title("What the heads became");
  table.note("confidence: the largest weight of a query; entropy: 0 looks at one key, 1 at all alike.");
  if (targets > 0) {
    const bool even = std::any_of(result.targets.begin(), result.targets.end(), [](const HeadTarget& target) {
      return target.kind == HeadTarget::Kind::uniform;
    });
    table.note(fmt::format("clean{}: over {} of a head's weight on one of the task's {} target{}.",
                           result.seeds > 1 && result.seeds <= most_points ? ", seed by seed" : "",
                           clean_mass, targets, targets == 1 ? "" : "s"));
    if (even) {
      table.note(
          fmt::format("Where even attention is a target, entropy over {} is clean too.", clean_entropy));
    }
    table.note("cover: targets that have a clean head.");
  }
  return table.str(terminal);
}

std::string wrapped(const std::string& text, std::int64_t width) {
  std::string out, line;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    const std::string word = text.substr(at, end - at);
    if (!line.empty() && display_width(line) + 1 + display_width(word) > width) {
      out += line + "\n";
      line.clear();
    }
    if (!line.empty()) line += ' ';
    line += word;
    at = end + 1;
  }
  return out + line + "\n";
}

std::string sentence(const std::string& text, const Terminal& terminal) {
  return wrapped(shown_on(terminal, text), terminal.width > 0 ? terminal.width : text_width);
}

/// Heads in the order of the read-out that needs them most, so that a job per head shows as a diagonal; those
/// that nothing needs come last.
std::vector<const KnockoutLoss*> by_readout(const KnockoutMatrix& matrix) {
  constexpr double needed = 0.05;
  const auto place = [](const KnockoutLoss* loss) {
    const auto most = std::max_element(loss->readouts.begin(), loss->readouts.end());
    return most == loss->readouts.end() || *most < needed ? loss->readouts.end() - loss->readouts.begin()
                                                          : most - loss->readouts.begin();
  };
  std::vector<const KnockoutLoss*> heads;
  for (const KnockoutLoss& loss : matrix.heads) heads.push_back(&loss);
  std::stable_sort(heads.begin(), heads.end(),
                   [&](const KnockoutLoss* a, const KnockoutLoss* b) { return place(a) < place(b); });
  return heads;
}

std::string knockout_text(const AblationResult& result, const Terminal& terminal) {
  HeatMap map;
  map.title = "Accuracy lost without one head (layer.head), by read-out";
  for (const KnockoutLoss* loss : by_readout(*result.knockout)) {
    map.row_labels.push_back(loss->head.str());
    map.values.insert(map.values.end(), loss->readouts.begin(), loss->readouts.end());
  }
  map.column_labels = result.knockout->answers;
  map.rows = std::ssize(map.row_labels);
  map.columns = std::ssize(map.column_labels);
  map.numbers = true;
  return heat_map(map, terminal) + sentence("Of " + reason(*result.picked) + ".", terminal);
}

std::string troubles_text(const AblationResult& result, const Terminal& terminal) {
  std::string text;
  for (const AblationLevel& level : result.levels) {
    for (const std::optional<RunRecord>& run : level.runs) {
      if (!run || !run->failure) continue;
      text += sentence(fmt::format("Failed, and left out: {}: {}", run->name, *run->failure), terminal);
    }
  }
  if (result.interrupted) {
    const std::int64_t total = result.seeds * std::ssize(result.levels);
    text += sentence(fmt::format("Stopped with {} of {} runs done, kept in {}; the same command continues.",
                                 result.done, total, result.folder.string()),
                     terminal);
  }
  return text;
}

}  // namespace

std::string ablation_text(const AblationResult& result, const Terminal& terminal) {
  std::vector<std::string> parts = {figures_text(result, terminal)};
  if (any_level(result, [](const AblationLevel& l) { return l.confidence.n > 0; })) {
    parts.push_back(heads_text(result, terminal));
  }
  if (result.knockout && result.picked) parts.push_back(knockout_text(result, terminal));
  parts.push_back(troubles_text(result, terminal));
  parts.push_back(sentence(finding(result), terminal));
  std::erase(parts, "");
  return fmt::format("{}", fmt::join(parts, "\n"));
}

}  // namespace headlab
