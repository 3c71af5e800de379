// The sections of a report, each from one JSON file. Keys that are not there leave their part out. For
// page.cpp only. Error in all: a key of another type than it should be (the message of the JSON library).
#pragma once

#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "framework/report/chart.h"

namespace headlab {

struct PageSection {
  std::string id = {}, title = {}, body = {};                      ///< title as text, body as HTML
  std::vector<std::pair<std::string, std::string>> pictures = {};  ///< name of a file, SVG

  void add(std::string html) { body += html; }
  void picture(std::string name, const std::string& svg) {
    body += "<figure>" + svg + "</figure>\n";
    pictures.emplace_back(std::move(name), svg);
  }
};

using PageSections = std::vector<PageSection>;

PageSections ablation_sections(const nlohmann::json& results);
PageSections training_sections(const nlohmann::json& config, const std::vector<nlohmann::json>& metrics);
PageSections inspect_sections(const nlohmann::json& inspect);
PageSections knockout_sections(const nlohmann::json& knockout);
/// "mean, path k": how it differs from plain zeroing; empty where it does not.
std::string knockout_variant(const nlohmann::json& knockout);
PageSections prune_sections(const nlohmann::json& prune);
PageSections lifeline_sections(const nlohmann::json& lifeline);
/// `inspect` names the roles, or is null.
PageSections attention_sections(const nlohmann::json& attention, const nlohmann::json& inspect);

// What several of them need.

constexpr double not_known = std::numeric_limits<double>::quiet_NaN();
constexpr double infinite = std::numeric_limits<double>::infinity();

/// A number, or NaN where the key is missing or null.
double number_at(const nlohmann::json& json, const std::string& key);
std::string text_at(const nlohmann::json& json, const std::string& key);
/// The matrix as a picture, its numbers folded away below as a table with this caption. `first`: the heading
/// of the row labels.
void add_matrix(PageSection& section, std::string name, const MatrixPicture& matrix,
                const std::string& caption, const std::string& first = "head");
/// Below a matrix of what is lost.
constexpr const char* lost_note =
    "<p class=\"note\">Lost: the share of right answers with the head less that without it; ± half of its 95 "
    "% "
    "t interval over sequences. Orange: lost; blue: better without.</p>\n";
/// {"mean", "ci95": [low, high]} → "0.752 [0.592, 0.912]".
std::string interval_html(const nlohmann::json& summary, int decimals = 3);

}  // namespace headlab
