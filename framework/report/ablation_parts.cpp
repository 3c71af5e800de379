#include "framework/report/ablation_parts.h"

#include <fmt/format.h>

#include "framework/report/format.h"
#include "framework/report/heat_map.h"
#include "framework/report/published.h"

namespace headlab::ablation_parts {
namespace {

constexpr std::int64_t text_width = 100;  // of sentences, where the terminal sets no limit
constexpr std::int64_t curve_width = 24;

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

}  // namespace

std::string estimate_of(const Summary& summary, int decimals) {
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

int direction(const AblationLevel& level) {
  const std::optional<Comparison>& difference = level.difference;
  if (!difference || !difference->interval) return 0;
  if (difference->adjusted_p && *difference->adjusted_p >= 0.05) return 0;
  if (difference->interval->low > 0) return 1;
  return difference->interval->high < 0 ? -1 : 0;
}

std::string test_of(const AblationLevel& level) {
  return level.difference ? verdict(*level.difference) : std::string(nothing);
}

std::string h(const AblationLevel& level) { return fmt::format("h={}", level.heads); }

std::string held(const AblationResult& result) {
  const Needs& needs = result.base.needs;
  switch (result.hold) {
    case Hold::d_model:
      return fmt::format("d_model {} held", needs.d_model);
    case Hold::d_head:
      return fmt::format("d_head {} held", needs.each_head());
    case Hold::parameters:
      return fmt::format("parameters and d_head {} held", needs.each_head());
  }
  return "";
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

std::string sentence(const std::string& text, const Terminal& terminal) {
  return wrapped(shown_on(terminal, text), terminal.width > 0 ? terminal.width : text_width);
}

void note_low_rank(Table& table, const AblationResult& result) {
  if (!any_level(result, [](const AblationLevel& l) { return l.low_rank; })) return;
  const Needs& needs = result.base.needs;
  table.note(fmt::format("rank low: d_head < context {}: such heads cannot form every pattern.",
                         std::max(needs.context, needs.source_context)));
}

void note_rates(Table& table, const AblationResult& result) {
  const auto chosen = std::find_if(result.levels.begin(), result.levels.end(),
                                   [](const AblationLevel& l) { return l.rate && l.rate->best; });
  if (chosen == result.levels.end()) return;
  std::vector<double> rates;
  for (const TriedRate& tried : chosen->rate->tried) rates.push_back(tried.rate);
  table.note(fmt::format("lr: chosen for each head count among {} by the loss on seeds {} and {},",
                         fmt::join(rates, ", "), choosing_seed(result.first_seed, 0),
                         choosing_seed(result.first_seed, choosing_seeds - 1)));
  std::vector<std::string> edges;
  for (const AblationLevel& level : result.levels) {
    if (level.rate && level.rate->at_the_edge) edges.push_back(h(level));
  }
  table.note("which are not reported.");
  if (!edges.empty()) {
    table.note(fmt::format("One beyond the ends of that list may suit better: {}.", fmt::join(edges, ", ")));
  }
}

std::string curves_text(const AblationResult& result, const Terminal& terminal) {
  std::vector<LearningCurve> curves;
  std::vector<std::vector<double>> means;
  Scale scale{HUGE_VAL, -HUGE_VAL};
  const LearningCurve* longest = nullptr;
  for (const AblationLevel& level : result.levels) curves.push_back(learning_curve(level));
  for (const LearningCurve& curve : curves) {
    means.emplace_back();
    for (const Summary& loss : curve.loss) {
      means.back().push_back(loss.mean.value_or(NAN));
      if (!loss.mean) continue;
      scale.low = std::min(scale.low, *loss.mean);
      scale.high = std::max(scale.high, *loss.mean);
    }
    if (longest == nullptr || curve.steps.size() > longest->steps.size()) longest = &curve;
  }
  const std::size_t points = longest == nullptr ? 0 : longest->steps.size();
  if (points < 4) return "";
  std::vector<Field> fields = {
      field(result, "heads", [](const AblationLevel& l) { return grouped(l.heads); }),
      {{"training loss", Align::left}, {}}};
  for (const std::vector<double>& mean : means) {
    fields.back().cells.push_back(scale.low < scale.high ? sparkline(mean, curve_width, terminal, scale)
                                                         : sparkline(mean, curve_width, terminal));
  }
  for (const std::size_t at : {points / 8, points / 4, points / 2, points}) {
    if (at == 0) continue;
    Field shown{{fmt::format("to step {}", grouped(longest->steps[at - 1])), Align::right}, {}};
    for (const LearningCurve& curve : curves) {
      shown.cells.push_back(at <= curve.loss.size() ? estimate_of(curve.loss[at - 1], 2)
                                                    : std::string(nothing));
    }
    fields.push_back(std::move(shown));
  }
  Table table = table_of(fields);
  table.title("How they learned");
  table.note(fmt::format("Training loss of each of {} equal pieces; one scale for all, {} to {}.", points,
                         fixed(scale.low, 2), fixed(scale.high, 2)));
  return table.str(terminal);
}

std::string published_text(const AblationResult& result, const Terminal& terminal) {
  if (result.hold != Hold::d_model) return "";
  std::int64_t shared = 0;
  Table table({{"heads", Align::right},
               {"BLEU", Align::right},
               {"over h=1", Align::right},
               {"perplexity", Align::right},
               {"accuracy here", Align::right},
               {fmt::format("over h={}", result.reference), Align::right}});
  for (const PublishedHeads& row : published_heads) {
    const auto ours = std::find_if(result.levels.begin(), result.levels.end(),
                                   [&](const AblationLevel& l) { return l.heads == row.heads; });
    const bool there = ours != result.levels.end() && ours->accuracy.mean;
    shared += there ? 1 : 0;
    const std::string difference = there && ours->difference ? difference_of(*ours) : std::string(nothing);
    table.row({grouped(row.heads), fixed(row.bleu, 1),
               row.heads == 1 ? std::string(nothing) : with_sign(row.bleu - published_heads.front().bleu, 1),
               fixed(row.perplexity, 2), there ? fixed(*ours->accuracy.mean) : std::string(nothing),
               difference});
  }
  if (shared < 2) return "";
  table.title("Beside the head counts of a translation model");
  table.note(fmt::format("{}: d_model 512 held.", published_heads_source));
  table.note("Compare the shape alone: the tasks and the measures are different.");
  return table.str(terminal);
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

std::string failures_text(const AblationResult& result, const Terminal& terminal) {
  std::string text;
  for (const AblationLevel& level : result.levels) {
    for (const std::optional<RunRecord>& run : level.runs) {
      if (!run || !run->failure) continue;
      text += sentence(fmt::format("Failed, and left out: {}: {}", run->name, *run->failure), terminal);
    }
  }
  return text;
}

std::string stopped_text(std::int64_t done, std::int64_t total, const std::filesystem::path& folder,
                         bool choosing) {
  if (choosing) {
    return fmt::format(
        "Stopped while learning rates were chosen; what is done is kept in {}, and the same "
        "command continues.",
        folder.string());
  }
  return fmt::format("Stopped with {} of {} runs done, kept in {}; the same command continues.", done, total,
                     folder.string());
}

}  // namespace headlab::ablation_parts
