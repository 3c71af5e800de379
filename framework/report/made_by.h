// What made a result: shown at the end of report.html, beside every result.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

namespace headlab {

struct MadeBy {
  std::string command;  ///< as it would be typed again
  std::string version;
};

/// Writes `json` with "made_by" as `file` into the folder. Errors: those of write_json().
void save_result(const std::filesystem::path& folder, std::string_view file, nlohmann::json json,
                 const MadeBy& made_by);

}  // namespace headlab
