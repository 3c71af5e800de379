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

std::string role_of(const Json& head) {
  const std::string role = text_at(head, "role");
  return role.empty() ? "no role" : role;
}

/// The run whose heads are shown.
const Json& shown_run(const Json& lifeline) {
  const std::string shown = text_at(lifeline, "shown");
  const Json& runs = lifeline.at("runs");
  for (const Json& run : runs) {
    if (text_at(run, "run") == shown) return run;
  }
  return runs.at(0);
}

/// How strongly each head has its role, over the steps; the strongest eight where there are more.
Chart strength_chart(const Json& run) {
  Chart chart{.title = "Strength of each head's role",
              .x_label = "step",
              .y_label = "strength",
              .y_low = 0,
              .y_high = 1};
  const auto steps = run.at("steps").get<std::vector<double>>();
  // From a step on that is not 0 the axis can be logarithmic, as the moments are.
  chart.log_x = steps.size() > 2;
  std::vector<const Json*> heads;
  for (const Json& head : run.at("heads")) heads.push_back(&head);
  std::stable_sort(heads.begin(), heads.end(), [](const Json* a, const Json* b) {
    const auto last = [](const Json& head) {
      return head.at("strength").empty() ? 0.0 : head.at("strength").back().get<double>();
    };
    return last(*a) > last(*b);
  });
  if (heads.size() > 8) heads.resize(8);
  for (const Json* head : heads) {
    ChartSeries series{.name = text_at(*head, "head")};
    for (std::size_t i = 0; i < steps.size(); ++i) {
      if (chart.log_x && steps[i] <= 0) continue;
      series.line.push_back({steps[i], head->at("strength").at(i).get<double>()});
    }
    chart.series.push_back(std::move(series));
  }
  const Json& change = run.value("loss_change", Json());
  if (change.is_object() && number_at(change, "step") > 0) {
    chart.marks.push_back({number_at(change, "step"), "the loss steps down"});
  }
  return chart;
}

/// One frame a moment: what every head was then.
std::string slider(const Json& run) {
  const Json& steps = run.at("steps");
  std::string out = "<div class=\"slider\" data-label=\"Step\">";
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const std::string step = steps[i].dump();
    out += fmt::format("<div data-step=\"{0}\"><h3>At step {0}</h3><ul class=\"cards\">", step);
    for (const Json& head : run.at("heads")) {
      const double strength = head.at("strength").at(i).get<double>();
      const Json& scores = head.at("score");
      const double score = scores.at(i).is_number() ? scores.at(i).get<double>() : not_known;
      out += fmt::format("<li class=\"card\"><b>{} · {}</b><span>strength {}, score {}</span></li>",
                         escaped(text_at(head, "head")), escaped(strength > 0 ? role_of(head) : "not yet"),
                         html_number(strength, 2), html_number(score, 2));
    }
    out += "</ul></div>";
  }
  return out + "</div>\n";
}

std::string whole_or_dash(const Json& json, const char* key) { return html_number(number_at(json, key), 0); }

HtmlTable head_table(const Json& run) {
  HtmlTable table("Every head of this run", {{"head"},
                                             {"role at the end"},
                                             {"born at step", Align::right},
                                             {"steepest at", Align::right},
                                             {"settled at", Align::right}});
  for (const Json& head : run.at("heads")) {
    const Json& change = head.value("score_change", Json());
    table.row({escaped(text_at(head, "head")), escaped(role_of(head)), whole_or_dash(head, "born"),
               change.is_object() ? whole_or_dash(change, "step") : "–", whole_or_dash(head, "settled")});
  }
  table.note(
      "Born: the role stands above its null from then on. Settled: from then on the head is matched (√JS) "
      "with itself at the end.");
  return table;
}

HtmlTable role_table(const Json& lifeline) {
  HtmlTable table("Birth of roles over the seeds",
                  {{"role"}, {"seeds", Align::right}, {"born at step [95 %]", Align::right}});
  const std::size_t runs = lifeline.at("runs").size();
  for (const Json& role : lifeline.at("roles")) {
    std::string born = html_number(number_at(role, "born"), 0);
    if (std::isfinite(number_at(role, "low"))) {
      born += fmt::format(" [{}, {}]", html_number(number_at(role, "low"), 0),
                          html_number(number_at(role, "high"), 0));
    }
    table.row({escaped(text_at(role, "role")), fmt::format("{} of {}", role.at("seeds").dump(), runs), born});
  }
  return table;
}

HtmlTable match_table(const Json& lifeline) {
  HtmlTable table("Heads of other seeds that fit best",
                  {{"head"}, {"run"}, {"its head"}, {"√JS", Align::right}, {"null", Align::right}});
  // One for each run but the one that is shown.
  std::vector<std::string> others;
  for (const Json& run : lifeline.at("runs")) {
    if (text_at(run, "run") != text_at(lifeline, "shown")) others.push_back(text_at(run, "run"));
  }
  const Json& matchings = lifeline.at("matchings");
  for (std::size_t i = 0; i < matchings.size(); ++i) {
    const std::string run = i < others.size() ? others[i].substr(others[i].rfind('/') + 1) : "";
    for (const Json& match : matchings[i]) {
      const std::string partner = text_at(match, "partner");
      table.row({escaped(text_at(match, "head")), escaped(run),
                 partner.empty() ? "unmatched" : escaped(partner), html_number(number_at(match, "distance")),
                 html_number(number_at(match, "null"))});
    }
  }
  return table;
}

}  // namespace

PageSections lifeline_sections(const Json& lifeline) {
  const Json& run = shown_run(lifeline);
  PageSection section{.id = "lifeline", .title = "Life-lines"};
  section.add(fmt::format("<p class=\"note\">The heads of {}.</p>\n", escaped(text_at(run, "run"))));
  section.picture("lifeline", chart_svg(strength_chart(run)));
  section.add(slider(run));
  section.add(head_table(run).str());
  if (!lifeline.at("roles").empty()) section.add(role_table(lifeline).str());
  if (lifeline.contains("matchings") && !lifeline["matchings"].empty()) {
    section.add(html_details("Heads matched with those of other seeds", match_table(lifeline).str()));
  }
  return {std::move(section)};
}

}  // namespace headlab
