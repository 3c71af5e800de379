#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "framework/report/chart.h"
#include "framework/report/format.h"
#include "framework/report/html.h"
#include "framework/report/page_sections.h"

namespace headlab {

namespace {

using Json = nlohmann::json;

/// The scores of a head that say most: those that hold, else the one that comes nearest to what is needed.
std::vector<const Json*> telling_scores(const Json& head) {
  std::vector<const Json*> list;
  const Json* nearest = nullptr;
  double gap = -infinite;
  for (const Json& role : head.at("roles")) {
    if (role.value("holds", false)) list.push_back(&role);
    const double needed = std::max(number_at(role, "null_threshold"), number_at(role, "floor"));
    const double above = number_at(role, "score") - needed;
    if (std::isfinite(above) && above > gap) gap = above, nearest = &role;
  }
  if (list.empty() && nearest != nullptr) list.push_back(nearest);
  return list;
}

std::string cards(const Json& heads) {
  std::string out = "<ul class=\"cards\">";
  for (const Json& head : heads) {
    const std::string role = text_at(head, "role");
    out += fmt::format("<li class=\"card\"><b>{} · {}</b>", escaped(text_at(head, "head")),
                       escaped(role.empty() ? "no role" : role));
    for (const Json& score : head.at("roles")) {
      if (text_at(score, "name") != role) continue;
      out += fmt::format(
          "<span>score {}, null {} (needs over {})</span>", html_number(number_at(score, "score"), 2),
          html_number(number_at(score, "null_median"), 2),
          html_number(std::max(number_at(score, "null_threshold"), number_at(score, "floor")), 2));
    }
    out += fmt::format("<span>confidence {}, entropy {}</span></li>",
                       html_number(number_at(head, "confidence"), 2),
                       html_number(number_at(head, "normalised_entropy"), 2));
  }
  return out + "</ul>\n";
}

HtmlTable head_table(const Json& heads) {
  HtmlTable table("Every head", {{"head"},
                                 {"layer"},
                                 {"role"},
                                 {"confidence", Align::right},
                                 {"entropy, nats", Align::right},
                                 {"normalised", Align::right},
                                 {"distance", Align::right},
                                 {"best offset", Align::right},
                                 {"its share", Align::right},
                                 {"clean for"}});
  for (const Json& head : heads) {
    const std::string role = text_at(head, "role"), clean = text_at(head, "clean_for");
    table.row({escaped(text_at(head, "head")), escaped(text_at(head, "layer")),
               escaped(role.empty() ? "none" : role), html_number(number_at(head, "confidence")),
               html_number(number_at(head, "entropy")), html_number(number_at(head, "normalised_entropy")),
               html_number(number_at(head, "distance"), 2), html_number(number_at(head, "best_offset"), 0),
               html_number(number_at(head, "best_offset_share")), clean.empty() ? "–" : escaped(clean)});
  }
  table.note(
      "Normalised entropy: 0 looks at one key, 1 at all alike. The best offset is chosen on one half of the "
      "held-out set and measured on the other.");
  return table;
}

HtmlTable score_table(const Json& heads) {
  HtmlTable table("Scores beside their nulls", {{"head"},
                                                {"role"},
                                                {"score", Align::right},
                                                {"null median", Align::right},
                                                {"null 99.9 %", Align::right},
                                                {"floor", Align::right},
                                                {"draws", Align::right},
                                                {"holds"}});
  for (const Json& head : heads) {
    for (const Json* score : telling_scores(head)) {
      table.row({escaped(text_at(head, "head")), escaped(text_at(*score, "name")),
                 html_number(number_at(*score, "score")), html_number(number_at(*score, "null_median")),
                 html_number(number_at(*score, "null_threshold")), html_number(number_at(*score, "floor"), 2),
                 html_number(number_at(*score, "null_draws"), 0),
                 score->value("holds", false) ? "yes" : "no"});
    }
  }
  table.note(
      "Of each head the roles that hold, or the one that comes nearest. A role needs a score above 99.9 % of "
      "its null and above the floor; inspect.json has every score.");
  return table;
}

/// Ranks of what a head computes from its weights alone; empty where no layer shows them.
std::string weight_table(const Json& heads) {
  HtmlTable table("What the weights say", {{"head"},
                                           {"W_QK stable rank", Align::right},
                                           {"effective", Align::right},
                                           {"W_OV stable rank", Align::right},
                                           {"effective", Align::right},
                                           {"copying", Align::right},
                                           {"low rank"}});
  for (const Json& head : heads) {
    const Json& weights = head.value("weights", Json());
    if (!weights.is_object()) continue;
    table.row({escaped(text_at(head, "head")), html_number(number_at(weights, "qk_stable_rank"), 2),
               html_number(number_at(weights, "qk_effective_rank"), 2),
               html_number(number_at(weights, "ov_stable_rank"), 2),
               html_number(number_at(weights, "ov_effective_rank"), 2),
               html_number(number_at(weights, "copying"), 2), head.value("low_rank", false) ? "yes" : "no"});
  }
  table.note(
      "Stable rank: ‖W‖²_F / ‖W‖²₂; effective: exp of the entropy of the squared singular values. Copying: "
      "from -1 to 1, by the eigenvalues of the map from tokens to answers. Low rank: d_head < context.");
  return table.empty() ? "" : html_details("What the weights say", table.str());
}

/// Pairs of heads by what the later one reads of what the earlier one writes, the strongest first.
std::string composition_table(const Json& inspect) {
  constexpr std::size_t most = 12;
  struct Pair {
    std::string from, to, way;
    double above = 0, chance = 0;
  };
  std::vector<Pair> pairs;
  for (const Json& pair : inspect.value("compositions", Json::array())) {
    for (const char* way : {"query", "key", "value"}) {
      const Json& share = pair.value(way, Json());
      if (!share.is_object()) continue;
      pairs.push_back({text_at(pair, "from"), text_at(pair, "to"), way, number_at(share, "above_random"),
                       number_at(share, "chance")});
    }
  }
  if (pairs.empty()) return "";
  std::stable_sort(pairs.begin(), pairs.end(),
                   [](const Pair& a, const Pair& b) { return a.above > b.above; });
  HtmlTable table(
      "Which heads read what others write",
      {{"reader"}, {"writer"}, {"as"}, {"above random", Align::right}, {"chance: up to", Align::right}});
  for (std::size_t i = 0; i < std::min(most, pairs.size()); ++i) {
    table.row({escaped(pairs[i].to), escaped(pairs[i].from), pairs[i].way, html_number(pairs[i].above),
               html_number(pairs[i].chance)});
  }
  table.note(fmt::format(
      "The strongest of {} composition scores, less those of random matrices; inspect.json has all.",
      grouped(std::ssize(pairs))));
  return html_details("Which heads read what others write", table.str());
}

/// Mass of each head on each target that the task names.
void target_matrix(const Json& heads, PageSection& section) {
  MatrixPicture matrix{.title = "Attention mass on what the task asks for"};
  for (const Json& head : heads) {
    const Json& targets = head.value("targets", Json::array());
    if (!targets.is_array() || targets.empty()) return;
    if (matrix.columns.empty()) {
      for (const Json& target : targets) matrix.columns.push_back(text_at(target, "name"));
    }
    if (targets.size() != matrix.columns.size()) return;
    matrix.rows.push_back(text_at(head, "head"));
    for (const Json& target : targets) matrix.values.push_back(number_at(target, "mass"));
  }
  if (matrix.rows.empty() ||
      std::none_of(matrix.values.begin(), matrix.values.end(), [](double v) { return std::isfinite(v); })) {
    return;
  }
  add_matrix(section, "targets", matrix, "Mass by target");
}

std::string seeds_html(const Json& seeds) {
  HtmlTable table("Over the seeds of this head count",
                  {{"figure"}, {"n", Align::right}, {"mean [95 %]", Align::right}});
  for (const auto& item : seeds.items()) {
    const Json& figure = item.value();
    if (!figure.is_object() || !figure.contains("mean")) continue;
    std::string name = item.key();
    std::replace(name.begin(), name.end(), '_', ' ');
    std::string value = html_number(number_at(figure, "mean"));
    if (std::isfinite(number_at(figure, "low"))) {
      value += fmt::format(" [{}, {}]", html_number(number_at(figure, "low")),
                           html_number(number_at(figure, "high")));
    }
    table.row({escaped(name), html_number(number_at(figure, "n"), 0), value});
  }
  std::string out = table.empty() ? "" : table.str();
  if (seeds.contains("seeds_with_role") && seeds["seeds_with_role"].is_object()) {
    const std::size_t n = seeds.value("seeds", Json::array()).size();
    HtmlTable roles("Roles over seeds", {{"role"}, {"seeds that have it", Align::right}});
    for (const auto& item : seeds["seeds_with_role"].items()) {
      roles.row({escaped(item.key()), fmt::format("{} of {}", item.value().dump(), n)});
    }
    if (!roles.empty()) out += roles.str();
  }
  return out;
}

}  // namespace

PageSections inspect_sections(const Json& inspect) {
  const Json& heads = inspect.at("heads");
  PageSections sections;
  PageSection section{.id = "heads", .title = "What each head does"};
  const std::string note = text_at(inspect, "chosen_because");
  if (!note.empty()) section.add(fmt::format("<p class=\"note\">{}</p>\n", escaped(note)));
  const bool roles = !heads.empty() && heads[0].contains("roles");
  if (roles) section.add(cards(heads));
  target_matrix(heads, section);
  section.add(head_table(heads).str());
  if (roles) section.add(html_details("Scores beside their nulls", score_table(heads).str()));
  section.add(weight_table(heads) + composition_table(inspect));
  if (inspect.contains("over_seeds") && inspect["over_seeds"].is_object()) {
    section.add(seeds_html(inspect["over_seeds"]));
  }
  sections.push_back(std::move(section));
  return sections;
}

}  // namespace headlab
