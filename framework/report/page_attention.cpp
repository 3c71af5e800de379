#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "framework/core/check.h"
#include "framework/report/html.h"
#include "framework/report/page.h"
#include "framework/report/page_sections.h"

namespace headlab {

namespace {

using Json = nlohmann::json;

constexpr std::string_view digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

std::string base64(const std::uint8_t* data, std::int64_t count) {
  std::string out;
  out.reserve(static_cast<std::size_t>((count + 2) / 3 * 4));
  for (std::int64_t i = 0; i < count; i += 3) {
    const std::int64_t left = std::min<std::int64_t>(3, count - i);
    std::uint32_t bits = 0;
    for (std::int64_t k = 0; k < 3; ++k) bits = bits << 8U | (k < left ? data[i + k] : 0U);
    for (std::int64_t k = 0; k < 4; ++k) {
      out += k <= left ? digits[bits >> (18 - 6 * k) & 63U] : '=';
    }
  }
  return out;
}

std::vector<std::uint8_t> bytes_of(const std::string& text) {
  std::vector<std::uint8_t> out;
  std::uint32_t bits = 0;
  int held = 0;
  for (const char c : text) {
    if (c == '=') break;
    const std::size_t digit = digits.find(c);
    check(digit != std::string_view::npos, "attention.json", "'weights' is not base64");
    bits = bits << 6U | static_cast<std::uint32_t>(digit);
    held += 6;
    if (held >= 8) {
      held -= 8;
      out.push_back(static_cast<std::uint8_t>(bits >> static_cast<unsigned>(held)));
    }
  }
  return out;
}

/// Blanks and line ends can be seen.
std::string token_html(const std::string& token) {
  std::string shown;
  for (const char c : token) {
    if (c == ' ') {
      shown += "␣";
    } else {
      shown += c;
    }
  }
  return escaped(shown);
}

/// Of every head on one example, the key that each query looks at most: what the viewer shows, without it.
std::string strongest_keys(const Json& example) {
  std::string out;
  for (const Json& layer : example.at("layers")) {
    const auto queries = layer.at("queries").get<std::vector<std::string>>();
    const auto keys = layer.at("keys").get<std::vector<std::string>>();
    const std::vector<std::uint8_t> weights = bytes_of(layer.at("weights").get<std::string>());
    const auto heads = layer.at("heads").get<std::size_t>();
    check(weights.size() == heads * queries.size() * keys.size(), "attention.json",
          "layer {} has {} weights for {} heads, {} queries and {} keys", text_at(layer, "layer"),
          weights.size(), heads, queries.size(), keys.size());
    std::vector<Column> columns{{"query"}};
    for (std::size_t h = 0; h < heads; ++h) columns.push_back({fmt::format("head {}", h)});
    HtmlTable table(fmt::format("{}: the strongest key, and its weight", text_at(layer, "layer")),
                    std::move(columns));
    for (std::size_t i = 0; i < queries.size(); ++i) {
      std::vector<std::string> cells{fmt::format("{} {}", i, token_html(queries[i]))};
      for (std::size_t h = 0; h < heads; ++h) {
        const auto row =
            weights.begin() + static_cast<std::ptrdiff_t>((h * queries.size() + i) * keys.size());
        const auto best = std::max_element(row, row + static_cast<std::ptrdiff_t>(keys.size()));
        cells.push_back(*best == 0 ? "–"
                                   : fmt::format("{} {} {:.2f}", best - row,
                                                 token_html(keys[static_cast<std::size_t>(best - row)]),
                                                 *best / 255.0));
      }
      table.row(std::move(cells));
    }
    out += table.str();
  }
  return out;
}

}  // namespace

Json attention_maps_json(const std::vector<ExampleMaps>& maps) {
  Json examples = Json::array();
  for (const ExampleMaps& example : maps) {
    Json layers = Json::array();
    for (const LayerMaps& layer : example.layers) {
      layers.push_back({{"layer", layer.layer},
                        {"site", name_of(layer.site)},
                        {"heads", layer.weights.dim(0)},
                        {"queries", layer.queries},
                        {"keys", layer.keys},
                        {"weights", base64(layer.weights.data<std::uint8_t>(), layer.weights.size())}});
    }
    examples.push_back({{"example", example.example}, {"layers", std::move(layers)}});
  }
  return {{"examples", std::move(examples)}};
}

PageSections attention_sections(const Json& attention, const Json& inspect) {
  const Json& examples = attention.at("examples");
  if (examples.empty() || examples[0].at("layers").empty()) return {};
  Json data = {{"examples", examples}, {"roles", Json::object()}};
  if (inspect.is_object() && inspect.contains("heads")) {
    for (const Json& head : inspect["heads"]) {
      const std::string role = text_at(head, "role");
      if (!role.empty()) data["roles"][text_at(head, "head")] = role;
    }
  }
  PageSection section{.id = "attention", .title = "Attention of every head"};
  std::string text = data.dump(-1, ' ', false, Json::error_handler_t::replace);
  // Inside a script element only "</" could end it.
  for (std::size_t at = text.find("</"); at != std::string::npos; at = text.find("</", at + 3)) {
    text.replace(at, 2, "<\\/");
  }
  section.add("<script type=\"application/json\" id=\"attention-data\">" + text + "</script>\n");
  section.add(
      "<div class=\"viewer\" data-attention=\"attention-data\">The viewer needs JavaScript; the table "
      "below says the same of the first example.</div>\n");
  section.add(html_details(fmt::format("As a table: example {}", examples[0].at("example").dump()),
                           strongest_keys(examples[0])));
  return {std::move(section)};
}

}  // namespace headlab
