#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "framework/core/check.h"
#include "framework/report/chart.h"
#include "framework/report/html.h"
#include "framework/report/page_sections.h"

namespace headlab {

namespace {

using Json = nlohmann::json;

/// "1.10" → layer 1, head 10.
std::pair<std::size_t, std::size_t> place_of(const std::string& name) {
  constexpr std::size_t most = 10'000;  // a picture must stay one
  std::size_t layer = most, head = most;
  const char* end = name.data() + name.size();
  const auto first = std::from_chars(name.data(), end, layer);
  if (first.ptr != end) std::from_chars(first.ptr + 1, end, head);
  check(layer < most && head < most, "prune.json", "'{}' is not the name of a head", name);
  return {layer, head};
}

/// By layer and head; the names alone would put 0.10 before 0.2.
std::vector<std::pair<std::string, double>> in_order(const Json& gates) {
  std::vector<std::pair<std::string, double>> list;
  for (const auto& item : gates.items()) list.emplace_back(item.key(), item.value().get<double>());
  std::stable_sort(list.begin(), list.end(),
                   [](const auto& a, const auto& b) { return place_of(a.first) < place_of(b.first); });
  return list;
}

HtmlTable sizes(const Json& prune) {
  HtmlTable table("The model before and after",
                  {{"what"}, {"before", Align::right}, {"after", Align::right}});
  const auto row = [&](const char* what, const char* key, int decimals) {
    const Json& pair = prune.at(key);
    table.row({what, html_number(number_at(pair, "before"), decimals),
               html_number(number_at(pair, "after"), decimals)});
  };
  const auto whole = [&](const char* what, const char* key) {
    const Json& pair = prune.at(key);
    table.row({what, html_whole(std::llround(number_at(pair, "before"))),
               html_whole(std::llround(number_at(pair, "after")))});
  };
  whole("heads", "heads");
  whole("parameters", "parameters");
  row("accuracy", "accuracy", 3);
  row("held-out loss", "loss", 4);
  row("seconds", "seconds", 4);
  const std::string half = html_digits(number_at(prune, "interval"));
  table.note(fmt::format(
      "Over {} held-out sequences. Loss added: {}{}. {} times as fast. Its logits differ from those "
      "of the whole model with its gates so by {} of the largest at most.",
      html_number(number_at(prune, "sequences"), 0), html_digits(number_at(prune, "loss_added")),
      half == "–" ? "" : " ± " + half + " (95 %)", html_number(number_at(prune, "times_as_fast"), 2),
      html_digits(number_at(prune, "relative_logit_difference"))));
  const Json& random = prune.value("accuracy_at_random", Json());
  if (random.is_object()) {
    table.note(fmt::format("As many heads chosen at random: accuracy {} on average, {} at best of {}.",
                           html_number(number_at(random, "mean")), html_number(number_at(random, "best")),
                           html_number(number_at(random, "n"), 0)));
  }
  return table;
}

void gate_picture(const Json& prune, PageSection& section) {
  std::map<std::size_t, std::map<std::size_t, double>> layers;
  std::size_t most = 0;
  for (const auto& [head, gate] : in_order(prune.at("gates"))) {
    const auto [layer, index] = place_of(head);
    layers[layer][index] = gate;
    most = std::max(most, index + 1);
  }
  MatrixPicture matrix{.title = "Gates: 0 where the head is gone"};
  for (std::size_t h = 0; h < most; ++h) matrix.columns.push_back(fmt::format("{}", h));
  for (const auto& [layer, heads] : layers) {
    matrix.rows.push_back(fmt::format("layer {}", layer));
    for (std::size_t h = 0; h < most; ++h) {
      matrix.values.push_back(heads.count(h) > 0 ? heads.at(h) : not_known);
    }
  }
  section.picture("prune", matrix_svg(matrix));
}

HtmlTable head_table(const Json& prune) {
  HtmlTable table("Every head", {{"head"}, {"stays"}, {"gate", Align::right}, {"importance", Align::right}});
  const Json importance = prune.value("importance", Json());
  for (const auto& [head, gate] : in_order(prune.at("gates"))) {
    table.row({escaped(head), gate > 0 ? "yes" : "no", html_number(gate),
               importance.is_object() ? html_digits(number_at(importance, head)) : "–"});
  }
  return table;
}

}  // namespace

PageSections prune_sections(const Json& prune) {
  PageSection section{.id = "prune", .title = "A smaller model"};
  const double keep = number_at(prune, "keep"), lambda = number_at(prune, "lambda");
  section.add(fmt::format(
      "<p class=\"note\">{}{}. The smaller model is <code>{}</code>.</p>\n",
      std::isfinite(keep)
          ? fmt::format("The most important heads stay, {} of all", html_number(keep, 2))
          : fmt::format("Gates were learned at a price of {} nats each; heads whose gate has shut are gone",
                        html_digits(lambda)),
      text_at(prune, "chosen_because").empty() ? "" : ". Of " + escaped(text_at(prune, "chosen_because")),
      escaped(text_at(prune, "file"))));
  section.add(sizes(prune).str());
  gate_picture(prune, section);
  section.add(html_details("Every head", head_table(prune).str()));
  return {std::move(section)};
}

}  // namespace headlab
