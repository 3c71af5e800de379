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

/// Whether a run is one of a level's: of a grid each setting has levels of its own.
bool belongs(const Json& run, const Json& level) {
  return run.at("heads") == level.at("heads") && text_at(run, "setting") == text_at(level, "setting");
}

/// "h=8", in a grid "h=8, lr=0.01".
std::string name_of(const Json& level) {
  const std::string setting = text_at(level, "setting");
  return fmt::format("h={}{}{}", level.at("heads").get<std::int64_t>(), setting.empty() ? "" : ", ", setting);
}

/// In a grid the first cell of a row says the setting too.
std::string level_html(const Json& level) {
  const std::string heads = html_whole(level.at("heads").get<std::int64_t>());
  const std::string setting = text_at(level, "setting");
  return setting.empty() ? heads : heads + ", " + escaped(setting);
}

std::string seeds_of(const Json& results, const Json& level, const char* key) {
  constexpr int in_a_line = 3;
  std::string list;
  int count = 0;
  for (const Json& run : results.value("runs", Json::array())) {
    if (!belongs(run, level)) continue;
    if (count > 0) list += count % in_a_line == 0 ? " " : "&nbsp;";
    ++count;
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
                                  {"accuracy by seed"}});
  bool tested = false;
  for (const Json& level : results.at("levels")) {
    const Json& difference = level.at("difference");
    if (!difference.is_null()) tested = tested || std::isfinite(number_at(difference, "adjusted_p"));
    table.row({level_html(level), html_whole(level.at("n").get<std::int64_t>()),
               interval_html(level.at("accuracy")),
               difference.is_null() ? "reference" : interval_html(difference),
               difference.is_null() ? "" : html_p(number_at(difference, "adjusted_p")),
               interval_html(level.at("loss")), html_number(number_at(level, "prototype")),
               seeds_of(results, level, "accuracy")});
  }
  table.note(
      fmt::format("Intervals are 95 % t intervals over seeds; differences are paired by seed. {} Prototype: "
                  "mean accuracy of a prototype in PyTorch with the task's own settings.",
                  tested ? "p: exact sign-flip test, Holm's correction over the comparisons."
                         : "An exact test of the differences (p) needs seven seeds."));
  return table;
}

HtmlTable size_table(const Json& results) {
  HtmlTable table("What each head count is made of", {{"heads", Align::right},
                                                      {"parameters", Align::right},
                                                      {"d_model", Align::right},
                                                      {"d_head", Align::right},
                                                      {"rank", Align::right},
                                                      {"learning rate", Align::right},
                                                      {"seconds a run", Align::right}});
  for (const Json& level : results.at("levels")) {
    table.row({level_html(level), html_whole(level.at("parameters").get<std::int64_t>()),
               html_whole(level.value("d_model", std::int64_t{0})),
               html_whole(level.at("d_head").get<std::int64_t>()),
               level.value("low_rank", false) ? "low" : "–", html_digits(number_at(level, "learning_rate")),
               html_digits(number_at(level, "seconds"))});
  }
  table.note(
      escaped(fmt::format("Held as heads change: {}. Rank low: d_head < context, such heads cannot form "
                          "every pattern.",
                          results.value("hold", "d_model"))));
  return table;
}

HtmlTable head_table(const Json& results) {
  HtmlTable table("What the heads became", {{"heads", Align::right},
                                            {"confidence [95 %]", Align::right},
                                            {"normalised entropy [95 %]", Align::right},
                                            {"clean heads [95 %]", Align::right},
                                            {"targets with a clean head [95 %]", Align::right}});
  for (const Json& level : results.at("levels")) {
    table.row({level_html(level), interval_html(level.at("confidence"), 2),
               interval_html(level.at("normalised_entropy"), 2), interval_html(level.at("clean_heads"), 1),
               interval_html(level.at("cover"), 1)});
  }
  return table;
}

/// A figure of the levels over the head count, with intervals and single seeds.
Chart level_chart(const Json& results, const char* key, std::string title, std::string y_label) {
  Chart chart{.title = std::move(title), .x_label = "heads", .y_label = std::move(y_label), .log_x = true};
  ChartSeries prototype{.name = "prototype in PyTorch", .dashed = true};
  std::vector<std::string> settings;
  for (const Json& level : results.at("levels")) {
    const auto heads = level.at("heads").get<double>();
    const std::string setting = text_at(level, "setting");
    if (settings.empty() || settings.back() != setting) {
      settings.push_back(setting);
      chart.series.push_back({.name = setting.empty() ? "mean, 95 % interval; rings: seeds" : setting});
    }
    if (settings.size() == 1) chart.x_ticks.push_back(heads);
    ChartSeries& mean = chart.series.back();
    const Json& summary = level.at(key);
    mean.line.push_back({heads, number_at(summary, "mean")});
    const Json& interval = summary.at("ci95");
    mean.low.push_back(interval.is_null() ? not_known : interval[0].get<double>());
    mean.high.push_back(interval.is_null() ? not_known : interval[1].get<double>());
    for (const Json& run : results.at("runs")) {
      if (belongs(run, level)) mean.points.push_back({heads, number_at(run, key)});
    }
    if (settings.size() == 1 && std::string_view(key) == "accuracy") {
      prototype.line.push_back({heads, number_at(level, "prototype")});
    }
  }
  bool known = false;
  for (const ChartPoint& p : prototype.line) known = known || std::isfinite(p.y);
  if (known) chart.series.push_back(std::move(prototype));
  return chart;
}

/// Training loss over the course, the mean over the seeds of each head count with its 95 % interval, and the
/// seeds as points.
Chart curve_chart(const Json& results) {
  Chart chart{
      .title = "Training loss, mean over seeds and 95 % interval", .x_label = "step", .y_label = "loss"};
  for (const Json& level : results.at("levels")) {
    const Json curve = level.value("curve", Json::object());
    const Json steps = curve.value("steps", Json::array());
    if (steps.empty()) continue;
    ChartSeries series{.name = name_of(level)};
    for (std::size_t i = 0; i < steps.size(); ++i) {
      const Json &mean = curve["mean"][i], &interval = curve["ci95"][i];
      const auto x = steps[i].get<double>();
      const double y = mean.is_number() ? mean.get<double>() : not_known;
      series.line.push_back({x, y});
      series.low.push_back(interval.is_null() ? y : interval[0].get<double>());
      series.high.push_back(interval.is_null() ? y : interval[1].get<double>());
      for (const Json& run : results.at("runs")) {
        if (!belongs(run, level) || !run.contains("curve") || run["curve"].size() != steps.size()) continue;
        series.points.push_back({x, run["curve"][i].get<double>()});
      }
    }
    chart.series.push_back(std::move(series));
  }
  return chart;
}

/// What a paper found, for the shape of the curve, beside what was found here.
std::string published_html(const Json& results) {
  const Json& published = results["published"];
  HtmlTable table("Beside the head counts of a translation model", {{"heads", Align::right},
                                                                    {"BLEU", Align::right},
                                                                    {"perplexity", Align::right},
                                                                    {"accuracy here [95 %]", Align::right}});
  for (const Json& row : published.at("levels")) {
    std::string ours = "–";
    for (const Json& level : results.at("levels")) {
      if (ours == "–" && level.at("heads") == row.at("heads")) ours = interval_html(level.at("accuracy"));
    }
    table.row({html_whole(row.at("heads").get<std::int64_t>()), html_number(number_at(row, "bleu"), 1),
               html_number(number_at(row, "perplexity"), 2), ours});
  }
  table.note(escaped(text_at(published, "source") + ": d_model 512 held. Compare the shape alone: the tasks "
                                                    "and the measures are different."));
  return table.str();
}

PageSection knockout_section(const Json& knockout) {
  PageSection section{.id = "lost", .title = "Accuracy lost without one head"};
  MatrixPicture matrix{.title = fmt::format("Share of right answers lost, {}", text_at(knockout, "run"))};
  matrix.low = -1;
  matrix.diverging = true;
  for (const Json& name : knockout.at("readouts")) matrix.columns.push_back(name.get<std::string>());
  for (std::size_t h = 0; h < knockout.at("heads").size(); ++h) {
    matrix.rows.push_back(knockout["heads"][h].get<std::string>());
    for (const Json& drop : knockout.at("drop").at(h)) {
      matrix.values.push_back(drop.is_number() ? drop.get<double>() : not_known);
    }
    if (!knockout.contains("interval")) continue;
    for (const Json& half : knockout["interval"].at(h)) {
      matrix.half_widths.push_back(half.is_number() ? half.get<double>() : not_known);
    }
  }
  add_matrix(section, "knockout", matrix, "Lost without one head");
  section.add(lost_note);
  return section;
}

}  // namespace

PageSections ablation_sections(const Json& results) {
  PageSections sections;
  PageSection levels{.id = "levels", .title = "Head counts"};
  levels.picture("accuracy",
                 chart_svg(level_chart(results, "accuracy", "Accuracy by head count", "accuracy")));
  levels.add(level_table(results).str());
  levels.add(size_table(results).str());
  sections.push_back(std::move(levels));
  PageSection became{.id = "became", .title = "What the heads became"};
  became.add(head_table(results).str());
  if (const std::string jobs = text_at(results, "jobs"); !jobs.empty())
    became.add(fmt::format("<p>{}</p>\n", escaped(jobs)));
  sections.push_back(std::move(became));
  const Chart curves = curve_chart(results);
  if (!curves.series.empty()) {
    PageSection section{.id = "curves", .title = "Learning curves"};
    section.picture("curves", chart_svg(curves));
    section.add(
        "<p class=\"note\">Bands are 95 % t intervals, points are seeds. The training loss is averaged over "
        "equal pieces of the course; results.json has the numbers of every run.</p>");
    sections.push_back(std::move(section));
  }
  if (results.contains("published")) {
    PageSection section{.id = "published", .title = "A published head-count table"};
    section.add(published_html(results));
    sections.push_back(std::move(section));
  }
  if (results.contains("knockout") && !results["knockout"].is_null()) {
    sections.push_back(knockout_section(results["knockout"]));
  }
  return sections;
}

}  // namespace headlab
