// report.html: one page for everything that is known of a run or a sweep, made from the JSON files in its
// folder and from nothing else, so that the page and the files say the same.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "framework/heads/attention_maps.h"

namespace headlab {

/// The files that a page is made of, in its order. Each is optional.
///   results.json    of `ablate`          train.json, config.json, metrics.jsonl   of `train`
///   inspect.json    of `inspect`         attention.json               maps of all heads on some examples
///   knockout.json, knockout-sets.json and others of `knockout`       prune.json      of `prune`
///   lifeline.json   of `lifeline`
constexpr std::string_view page_name = "report.html";

/// The file of a question to `knockout` ("knockout", "knockout-sets", …) for a way of switching off and a
/// path: "knockout.json", "knockout-mean.json", "knockout-zero-k.json". What is asked another way stays
/// beside it.
std::string knockout_file(std::string_view question, std::string_view how, std::string_view path);

/// {"examples": [{"example", "layers": [{"layer", "site", "heads", "queries", "keys", "weights": base64 of
/// bytes [heads, n_q, n_k], 255 times the weight}]}]}
nlohmann::json attention_maps_json(const std::vector<ExampleMaps>& maps);

struct PageOptions {
  bool pictures = false;  ///< each picture as an SVG file in the folder too
};

/// Makes the page again from what is in the folder; returns the files written, the page first. The page needs
/// no network, is at most 2 MB, and says everything in tables where scripts are off. Errors: a file that is
/// not what its name says; those of AtomicFile.
std::vector<std::filesystem::path> write_page(const std::filesystem::path& folder,
                                              const PageOptions& options = {});

}  // namespace headlab
