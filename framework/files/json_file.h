// Small JSON files: configurations, ledgers.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include <nlohmann/json_fwd.hpp>

namespace headlab {

/// Errors: cannot be read (see read_file), or is not JSON; names the path and the place.
nlohmann::json read_json(const std::filesystem::path& path);

/// The value, or null where there is none.
nlohmann::json or_null(const std::optional<double>& value);
nlohmann::json or_null(const std::optional<std::int64_t>& value);
nlohmann::json or_null(const std::optional<std::string>& value);

/// Replaces or creates the file atomically, indented. Errors: those of AtomicFile; text that is not UTF-8.
void write_json(const std::filesystem::path& path, const nlohmann::json& value);

}  // namespace headlab
