#include <algorithm>
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

std::string joined(const Json& names) {
  return fmt::format("{}", fmt::join(names.get<std::vector<std::string>>(), " "));
}

/// "loss_added" with the half width of its interval.
std::string added_html(const Json& loss) {
  const std::string out = html_digits(number_at(loss, "loss_added"));
  const double half = number_at(loss, "interval");
  return std::isfinite(half) ? out + " ± " + html_digits(half) : out;
}

/// Rows of {"lost_by": {read-out: share}}.
void lost_picture(const Json& rows, const char* name_key, const char* file, PageSection& section) {
  MatrixPicture matrix{
      .title = "Share of right answers lost, by what is asked", .low = -1, .diverging = true};
  for (const Json& row : rows) {
    const Json& lost = row.value("lost_by", Json::object());
    if (!lost.is_object() || lost.empty()) return;
    if (matrix.columns.empty()) {
      for (const auto& item : lost.items()) matrix.columns.push_back(item.key());
    }
    matrix.rows.push_back(text_at(row, name_key));
    const Json& halves = row.value("lost_by_interval", Json::object());
    for (const std::string& column : matrix.columns) {
      matrix.values.push_back(number_at(lost, column));
      matrix.half_widths.push_back(number_at(halves, column));
    }
  }
  if (std::none_of(matrix.half_widths.begin(), matrix.half_widths.end(),
                   [](double half) { return std::isfinite(half); })) {
    matrix.half_widths.clear();
  }
  if (matrix.rows.empty()) return;
  add_matrix(section, file, matrix, "Share of right answers lost", name_key);
  section.add(lost_note);
}

void singles(const Json& json, PageSection& section) {
  HtmlTable table("Without one head", {{"head"},
                                       {"loss added, 95 %", Align::right},
                                       {"accuracy lost", Align::right},
                                       {"p (Holm)", Align::right},
                                       {"matters"},
                                       {"importance", Align::right},
                                       {"signed effect", Align::right}});
  for (const Json& head : json.at("heads")) {
    const Json& importance = head.value("importance", Json::object());
    table.row({escaped(text_at(head, "head")), added_html(head),
               html_number(number_at(head, "accuracy_lost")), html_p(number_at(head, "p_holm")),
               head.value("matters", false) ? "yes" : "no", html_digits(number_at(importance, "example")),
               html_digits(number_at(importance, "effect"))});
  }
  table.note(
      "Matters: p under 0.05 after Holm's correction over the heads, and at least 1 % of the loss. It speaks "
      "of this model, not of other seeds. Importance is the mean of |∂L/∂gate| over examples.");
  section.add(table.str());
}

void sets(const Json& json, PageSection& section) {
  HtmlTable table("Without a set of heads, beside random sets of the same size and layers",
                  {{"set"},
                   {"heads"},
                   {"loss added, 95 %", Align::right},
                   {"accuracy lost", Align::right},
                   {"random sets", Align::right},
                   {"lost at random", Align::right},
                   {"p", Align::right}});
  for (const Json& set : json.at("sets")) {
    const Json& random = set.value("random_mean", Json());
    table.row({escaped(text_at(set, "name")), escaped(joined(set.at("heads"))), added_html(set),
               html_number(number_at(set, "accuracy_lost")), html_number(number_at(set, "random_sets"), 0),
               random.is_object() ? html_number(number_at(random, "accuracy_lost")) : "–",
               html_p(number_at(set, "p_random"))});
  }
  section.add(table.str());
  lost_picture(json.at("sets"), "name", "knockout-sets", section);
}

/// `y_key`: "accuracy", or "score", which is a share of the intact accuracy.
void course(const Json& points, const char* x_label, const std::string& y_key, const char* file,
            PageSection& section) {
  const char* y_label = y_key == "score" ? "share of the intact accuracy" : "accuracy";
  Chart chart{.title = "Accuracy as heads are removed", .x_label = x_label, .y_label = y_label, .y_low = 0};
  ChartSeries series;
  HtmlTable table("Heads removed",
                  {{"removed", Align::right}, {"last"}, {y_label, Align::right}, {"loss", Align::right}});
  for (const Json& point : points) {
    series.line.push_back({number_at(point, "off"), number_at(point, y_key)});
    table.row({html_number(number_at(point, "off"), 0), escaped(text_at(point, "head")),
               html_number(number_at(point, y_key)), html_number(number_at(point, "loss"), 4)});
  }
  chart.series.push_back(std::move(series));
  section.picture(file, chart_svg(chart));
  section.add(html_details("The numbers", table.str()));
}

void kept(const Json& json, PageSection& section) {
  HtmlTable table(
      "One head kept in a layer",
      {{"kept"}, {"of", Align::right}, {"loss added, 95 %", Align::right}, {"accuracy lost", Align::right}});
  for (const Json& layer : json.at("layers")) {
    table.row({escaped(text_at(layer, "kept")), html_number(number_at(layer, "heads"), 0), added_html(layer),
               html_number(number_at(layer, "accuracy_lost"))});
  }
  section.add(table.str());
}

void shapley(const Json& json, PageSection& section) {
  HtmlTable table("Shapley values: what each head adds on average over all sets of the others",
                  {{"head"},
                   {"accuracy", Align::right},
                   {"± error", Align::right},
                   {"loss", Align::right},
                   {"± error", Align::right}});
  const bool exact = json.value("exact", false);
  for (const Json& head : json.at("heads")) {
    const auto error = [&](const char* key) { return exact ? "–" : html_number(number_at(head, key), 4); };
    table.row({escaped(text_at(head, "head")), html_number(number_at(head, "accuracy"), 4),
               error("accuracy_error"), html_number(number_at(head, "loss"), 4), error("loss_error")});
  }
  table.note(exact ? "Exact, over all sets of heads."
                   : fmt::format("Sampled over {} orders; errors are standard errors.",
                                 html_number(number_at(json, "orders"), 0)));
  section.add(table.str());
}

}  // namespace

std::string knockout_variant(const Json& json) {
  const std::string how = text_at(json, "how"), path = text_at(json, "path");
  std::string variant = how.empty() || how == "zero" ? "" : how;
  if (path.empty() || path == "all") return variant;
  return fmt::format("{}{}path {}", variant, variant.empty() ? "" : ", ", path);
}

PageSections knockout_sections(const Json& json) {
  const std::string how = text_at(json, "how"), path = text_at(json, "path");
  PageSection section{.id = "knockout", .title = "Interventions"};
  std::string what = fmt::format("Before W_O, by: {}", how.empty() ? "zero" : how);
  if (!path.empty() && path != "all") what += fmt::format("; path: {}", path);
  section.add(fmt::format("<p class=\"note\">{}. Intact: accuracy {}, loss {}, over {} sequences.</p>\n",
                          escaped(what), html_number(number_at(json, "accuracy")),
                          html_number(number_at(json, "loss"), 4),
                          html_number(number_at(json, "sequences"), 0)));
  if (json.contains("heads")) {
    section.title = "Interventions on single heads";
    lost_picture(json["heads"], "head", "knockout-heads", section);
    singles(json, section);
  }
  if (json.contains("sets"))
    section.id = "knockout-sets", section.title = "Interventions on sets", sets(json, section);
  if (json.contains("steps")) {
    section.id = "knockout-cumulative";
    section.title = "Heads removed one after another";
    course(json["steps"], "heads removed, the strongest first", "accuracy", "knockout-cumulative", section);
  }
  if (json.contains("layers"))
    section.id = "knockout-kept", section.title = "One head kept", kept(json, section);
  if (json.contains("curve")) {
    section.id = "knockout-curve";
    section.title = "Prune curve";
    course(json["curve"].at("points"), "heads removed, the least important first", "score", "knockout-curve",
           section);
  }
  if (json.contains("shapley")) {
    section.id = "knockout-shapley";
    section.title = "Shapley values";
    shapley(json["shapley"], section);
  }
  if (const std::string variant = knockout_variant(json); !variant.empty()) {
    section.title += fmt::format(" ({})", variant);
    std::string suffix = "-" + (how.empty() ? std::string("zero") : how);
    if (!path.empty()) suffix += "-" + path;
    section.id += suffix;
    for (auto& picture : section.pictures) picture.first += suffix;
  }
  return {std::move(section)};
}

}  // namespace headlab
