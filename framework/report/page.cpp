#include "framework/report/page.h"

#include <array>
#include <cmath>
#include <fstream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "framework/core/check.h"
#include "framework/files/atomic_file.h"
#include "framework/files/json_file.h"
#include "framework/heads/intervention.h"
#include "framework/report/chart.h"
#include "framework/report/html.h"
#include "framework/report/page_assets.h"
#include "framework/report/page_sections.h"

namespace headlab {

namespace {

using Json = nlohmann::json;
namespace fs = std::filesystem;

constexpr std::array knockout_questions = {"knockout",          "knockout-sets",  "knockout-cumulative",
                                           "knockout-keep-one", "knockout-curve", "knockout-shapley"};
constexpr std::array hows = {How::zero, How::mean, How::resample, How::uniform, How::frozen};
constexpr std::array paths = {Path::all, Path::q, Path::k, Path::v, Path::residual};

Json read_if_there(const fs::path& path) { return fs::exists(path) ? read_json(path) : Json(); }

/// A line that a killed run has left half done is passed over.
std::vector<Json> read_lines(const fs::path& path) {
  std::vector<Json> lines;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    Json json = Json::parse(line, nullptr, false);
    if (json.is_object()) lines.push_back(std::move(json));
  }
  return lines;
}

struct Parts {
  std::string title;
  std::vector<std::string> findings;
  PageSections sections;
  std::vector<std::pair<std::string, Json>> made_by;  // what, and by which command
};

void take(Parts& parts, PageSections sections) {
  for (PageSection& section : sections) parts.sections.push_back(std::move(section));
}

template <class Sections>
void take_file(Parts& parts, const fs::path& folder, const std::string& file, const char* what,
               const Sections& sections_of) {
  const fs::path path = folder / file;
  const Json json = read_if_there(path);
  if (json.is_null()) return;
  try {
    take(parts, sections_of(json));
  } catch (const Json::exception& error) {
    fail(path.string(), "is not what headlab writes there: {}", error.what());
  }
  if (json.contains("finding") && json["finding"].is_string()) {
    const std::string variant = knockout_variant(json);
    parts.findings.push_back((variant.empty() ? "" : fmt::format("Knocked out by {}: ", variant)) +
                             json["finding"].get<std::string>());
  }
  if (!json.contains("made_by")) return;
  // One command may leave several files.
  for (auto& [whats, by] : parts.made_by) {
    if (by != json["made_by"]) continue;
    whats += fmt::format(", {}", what);
    return;
  }
  parts.made_by.emplace_back(what, json["made_by"]);
}

/// Of a text file its last part.
std::string task_name(const Json& json) { return fs::path(text_at(json, "task")).filename().string(); }

Parts parts_of(const fs::path& folder) {
  Parts parts;
  const fs::path clean = (folder / "").lexically_normal().parent_path();
  const Json results = read_if_there(folder / "results.json");
  const Json config = read_if_there(folder / "config.json");
  const Json inspect = read_if_there(folder / "inspect.json");
  const std::string name = clean.filename().string();
  parts.title = results.is_object()  ? fmt::format("{}: head counts compared", task_name(results))
                : config.is_object() ? fmt::format("{}: one run ({})", task_name(config), name)
                                     : name;
  take_file(parts, folder, "results.json", "Head counts", ablation_sections);
  take_file(parts, folder, "train.json", "Training", [](const Json&) { return PageSections(); });
  take_file(parts, folder, "inspect.json", "Heads", inspect_sections);
  take_file(parts, folder, "attention.json", "Attention",
            [&](const Json& attention) { return attention_sections(attention, inspect); });
  for (const char* question : knockout_questions) {
    for (const How how : hows) {
      for (const Path path : paths) {
        take_file(parts, folder, knockout_file(question, name_of(how), name_of(path)), "Interventions",
                  knockout_sections);
      }
    }
  }
  take_file(parts, folder, "prune.json", "Pruning", prune_sections);
  take_file(parts, folder, "lifeline.json", "Life-lines", lifeline_sections);
  if (config.is_object()) take(parts, training_sections(config, read_lines(folder / "metrics.jsonl")));
  return parts;
}

std::string html_of(const Parts& parts) {
  std::string out =
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n";
  out += fmt::format("<title>{}</title>\n", escaped(parts.title));
  out += fmt::format("<style>\n{}{}</style></head>\n<body><main>\n", page_style(), picture_style());
  out += fmt::format("<header><h1>{}</h1>\n", escaped(parts.title));
  if (!parts.findings.empty()) {
    out += "<div class=\"finding\">";
    for (const std::string& finding : parts.findings) out += fmt::format("<p>{}</p>\n", escaped(finding));
    out += "</div>\n";
  }
  if (parts.sections.size() > 1) {
    out += "<nav aria-label=\"sections\">";
    for (const PageSection& s : parts.sections)
      out += fmt::format("<a href=\"#{}\">{}</a>", s.id, escaped(s.title));
    out += "</nav>";
  }
  out += "</header>\n";
  for (const PageSection& s : parts.sections) {
    out += fmt::format("<section id=\"{0}\"><h2>{1}</h2>\n{2}</section>\n", s.id, escaped(s.title), s.body);
  }
  out += "<footer><p>Made by headlab. To make it again:</p>\n";
  for (const auto& [what, by] : parts.made_by) {
    out += fmt::format("<p>{}: <code>{}</code> (version {})</p>\n", escaped(what),
                       escaped(text_at(by, "command")), escaped(text_at(by, "version")));
  }
  return out + fmt::format("</footer></main>\n<script>\n{}</script>\n</body></html>\n", page_script());
}

}  // namespace

std::string knockout_file(std::string_view question, std::string_view how, std::string_view path) {
  std::string name(question);
  if (how != name_of(How::zero) || path != name_of(Path::all)) name += fmt::format("-{}", how);
  if (path != name_of(Path::all)) name += fmt::format("-{}", path);
  return name + ".json";
}

double number_at(const Json& json, const std::string& key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_number() ? found->get<double>() : not_known;
}

std::string text_at(const Json& json, const std::string& key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_string() ? found->get<std::string>() : "";
}

void add_matrix(PageSection& section, std::string name, const MatrixPicture& matrix,
                const std::string& caption, const std::string& first) {
  section.picture(std::move(name), matrix_svg(matrix));
  std::vector<Column> columns{{first}};
  for (const std::string& label : matrix.columns) columns.push_back({label, Align::right});
  HtmlTable table(caption, std::move(columns));
  for (std::size_t i = 0; i < matrix.rows.size(); ++i) {
    std::vector<std::string> cells{escaped(matrix.rows[i])};
    for (std::size_t j = 0; j < matrix.columns.size(); ++j) {
      const std::size_t at = i * matrix.columns.size() + j;
      std::string cell = html_number(matrix.values[at]);
      if (!matrix.half_widths.empty() && std::isfinite(matrix.half_widths[at])) {
        cell += " ± " + html_number(matrix.half_widths[at]);
      }
      cells.push_back(std::move(cell));
    }
    table.row(std::move(cells));
  }
  section.add(html_details("The numbers", table.str()));
}

std::string interval_html(const Json& summary, int decimals) {
  std::string out = html_number(number_at(summary, "mean"), decimals);
  const auto interval = summary.find("ci95");
  if (interval == summary.end() || interval->is_null()) return out;
  return out + fmt::format(" [{}, {}]", html_number((*interval)[0].get<double>(), decimals),
                           html_number((*interval)[1].get<double>(), decimals));
}

std::vector<fs::path> write_page(const fs::path& folder, const PageOptions& options) {
  const Parts parts = parts_of(folder);
  std::vector<fs::path> written{folder / page_name};
  write_file(written.front(), html_of(parts));
  if (!options.pictures) return written;
  for (const PageSection& section : parts.sections) {
    for (const auto& [name, svg] : section.pictures) {
      written.push_back(folder / (name + ".svg"));
      write_file(written.back(), svg_file(svg));
    }
  }
  return written;
}

}  // namespace headlab
