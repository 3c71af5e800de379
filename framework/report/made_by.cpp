#include "framework/report/made_by.h"

#include <nlohmann/json.hpp>

#include "framework/files/json_file.h"

namespace headlab {

void save_result(const std::filesystem::path& folder, std::string_view file, nlohmann::json json,
                 const MadeBy& made_by) {
  json["made_by"] = {{"command", made_by.command}, {"version", made_by.version}};
  write_json(folder / file, json);
}

}  // namespace headlab
