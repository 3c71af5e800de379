#include "framework/files/json_file.h"

#include <nlohmann/json.hpp>

#include "framework/core/check.h"
#include "framework/files/atomic_file.h"

namespace headlab {

nlohmann::json read_json(const std::filesystem::path& path) {
  const std::string text = read_file(path);
  try {
    return nlohmann::json::parse(text);
  } catch (const nlohmann::json::parse_error& error) {
    fail(path.string(), "not JSON at byte {}", error.byte);
  }
}

nlohmann::json or_null(const std::optional<double>& value) {
  return value ? nlohmann::json(*value) : nullptr;
}
nlohmann::json or_null(const std::optional<std::int64_t>& value) {
  return value ? nlohmann::json(*value) : nullptr;
}
nlohmann::json or_null(const std::optional<std::string>& value) {
  return value ? nlohmann::json(*value) : nullptr;
}

void write_json(const std::filesystem::path& path, const nlohmann::json& value) {
  std::string text;
  try {
    text = value.dump(2) + "\n";
  } catch (const nlohmann::json::exception&) {
    fail(path.string(), "cannot write: holds text that is not UTF-8");
  }
  write_file(path, text);
}

}  // namespace headlab
