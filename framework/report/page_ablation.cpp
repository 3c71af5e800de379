#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "framework/report/chart.h"
#include "framework/report/format.h"
#include "framework/report/html.h"
#include "framework/report/page_sections.h"

namespace headlab {

namespace {

using Json = nlohmann::json;

std::string seeds_of(const Json& results, const Json& level, const char* key) {
  std::string list;
  for (const Json& run : results.value("runs", Json::array())) {
    if (run.value("heads", 0) != level.value("heads", -1)) continue;
    if (!list.empty()) list += " ";
    list +=
        run.contains("failure") && !run["failure"].is_null() ? "failed" : html_number(number_at(run, key));
  }
  return list;
}

HtmlTable level_table(const Json& results) {
  HtmlTable table("Head counts", {{"heads", Align::right},
                                  {"seeds", Align::right},
                                  {"accuracy [95 %]", Align::right},
                                  {"difference [95 %]", Align::right},
                                  {"p (Holm)", Align::right},
                                  {"loss [95 %]", Align::right},
                                  {"prototype", Align::right},
                                  {"parameters", Align::right},
                                  {"d_head", Align::right},
                                  {"accuracy by seed"}});
  for (const Json& level : results.at("levels")) {
    const Json& difference = level.at("difference");
    table.row({html_whole(level.at("heads").get<std::int64_t>()),
               html_whole(level.at("n").get<std::int64_t>()), interval_html(level.at("accuracy")),
               difference.is_null() ? "reference" : interval_html(difference),
               difference.is_null() ? "" : html_p(number_at(difference, "adjusted_p")),
               interval_html(level.at("loss")), html_number(number_at(level, "prototype")),
               html_whole(level.at("parameters").get<std::int64_t>()),
               html_whole(level.at("d_head").get<std::int64_t>()), seeds_of(results, level, "accuracy")});
  }
  table.note("Intervals are 95 % t intervals over seeds; differences are paired by seed.");
  return table;
}

HtmlTable head_table(const Json& results) {
  HtmlTable table("What the heads became", {{"heads", Align::right},
                                            {"confidence [95 %]", Align::right},
                                            {"normalised entropy [95 %]", Align::right},
                                            {"clean heads [95 %]", Align::right},
                                            {"targets with a clean head [95 %]", Align::right}});
  for (const Json& level : results.at("levels")) {
    table.row({html_whole(level.at("heads").get<std::int64_t>()), interval_html(level.at("confidence"), 2),
               interval_html(level.at("normalised_entropy"), 2), interval_html(level.at("clean_heads"), 1),
               interval_html(level.at("cover"), 1)});
  }
  return table;
}

/// A figure of the levels over the head count, with intervals and single seeds.
Chart level_chart(const Json& results, const char* key, std::string title, std::string y_label) {
  Chart chart{.title = std::move(title), .x_label = "heads", .y_label = std::move(y_label), .log_x = true};
  ChartSeries mean{.name = "mean, 95 % interval; rings: seeds"};
  ChartSeries prototype{.name = "prototype in PyTorch", .dashed = true};
  for (const Json& level : results.at("levels")) {
    const auto heads = level.at("heads").get<double>();
    chart.x_ticks.push_back(heads);
    const Json& summary = level.at(key);
    mean.line.push_back({heads, number_at(summary, "mean")});
    const Json& interval = summary.at("ci95");
    mean.low.push_back(interval.is_null() ? not_known : interval[0].get<double>());
    mean.high.push_back(interval.is_null() ? not_known : interval[1].get<double>());
    for (const Json& run : results.at("runs")) {
      if (run.at("heads").get<double>() == heads) mean.points.push_back({heads, number_at(run, key)});
    }
    if (std::string_view(key) == "accuracy") prototype.line.push_back({heads, number_at(level, "prototype")});
  }
  chart.series.push_back(std::move(mean));
  bool known = false;
  for (const ChartPoint& p : prototype.line) known = known || std::isfinite(p.y);
  if (known) chart.series.push_back(std::move(prototype));
  return chart;
}

/// Training loss over the course, the mean over the seeds of each head count and the range of the seeds.
Chart curve_chart(const Json& results) {
  Chart chart{
      .title = "Training loss, mean over seeds", .x_label = "share of the steps, %", .y_label = "loss"};
  for (const Json& level : results.at("levels")) {
    ChartSeries series{.name = fmt::format("h={}", level.at("heads").get<std::int64_t>())};
    std::vector<const Json*> curves;
    for (const Json& run : results.at("runs")) {
      if (run.at("heads") == level.at("heads") && run.contains("curve") && run["curve"].is_array() &&
          !run["curve"].empty()) {
        curves.push_back(&run["curve"]);
      }
    }
    if (curves.empty()) continue;
    const std::size_t pieces = curves.front()->size();
    for (std::size_t i = 0; i < pieces; ++i) {
      double sum = 0, low = infinite, high = -infinite;
      double n = 0;
      for (const Json* curve : curves) {
        if (i >= curve->size() || !(*curve)[i].is_number()) continue;
        const auto y = (*curve)[i].get<double>();
        sum += y;
        n += 1;
        low = std::min(low, y);
        high = std::max(high, y);
      }
      if (n == 0) continue;
      series.line.push_back({100 * (static_cast<double>(i) + 0.5) / static_cast<double>(pieces), sum / n});
      series.low.push_back(low);
      series.high.push_back(high);
    }
    chart.series.push_back(std::move(series));
  }
  return chart;
}

PageSection knockout_section(const Json& knockout) {
  PageSection section{.id = "lost", .title = "Accuracy lost without one head"};
  MatrixPicture matrix{.title = fmt::format("Share of right answers lost, {}", text_at(knockout, "run"))};
  matrix.low = -1;
  matrix.diverging = true;
  for (const Json& name : knockout.at("readouts")) matrix.columns.push_back(name.get<std::string>());
  HtmlTable table("Lost without one head", [&] {
    std::vector<Column> columns{{"head"}};
    for (const std::string& name : matrix.columns) columns.push_back({name, Align::right});
    return columns;
  }());
  for (std::size_t h = 0; h < knockout.at("heads").size(); ++h) {
    matrix.rows.push_back(knockout["heads"][h].get<std::string>());
    std::vector<std::string> cells{escaped(matrix.rows.back())};
    for (const Json& drop : knockout.at("drop").at(h)) {
      const double value = drop.is_number() ? drop.get<double>() : not_known;
      matrix.values.push_back(value);
      cells.push_back(html_number(value));
    }
    table.row(std::move(cells));
  }
  section.picture("knockout", matrix_svg(matrix));
  section.add(html_details("The numbers", table.str()));
  return section;
}

}  // namespace

PageSections ablation_sections(const Json& results) {
  PageSections sections;
  PageSection levels{.id = "levels", .title = "Head counts"};
  levels.picture("accuracy",
                 chart_svg(level_chart(results, "accuracy", "Accuracy by head count", "accuracy")));
  levels.add(level_table(results).str());
  sections.push_back(std::move(levels));
  PageSection became{.id = "became", .title = "What the heads became"};
  became.add(head_table(results).str());
  sections.push_back(std::move(became));
  const Chart curves = curve_chart(results);
  if (!curves.series.empty()) {
    PageSection section{.id = "curves", .title = "Learning curves"};
    section.picture("curves", chart_svg(curves));
    section.add(
        "<p class=\"note\">Bands span the seeds. The training loss is averaged over equal pieces of the "
        "course; results.json has the numbers of every run.</p>");
    sections.push_back(std::move(section));
  }
  if (results.contains("knockout") && !results["knockout"].is_null()) {
    sections.push_back(knockout_section(results["knockout"]));
  }
  return sections;
}

}  // namespace headlab
