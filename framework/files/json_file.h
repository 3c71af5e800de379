// Small JSON files: configurations, ledgers.
#pragma once

#include <filesystem>

#include <nlohmann/json_fwd.hpp>

namespace headlab {

/// Errors: cannot be read (see read_file), or is not JSON; names the path and the place.
nlohmann::json read_json(const std::filesystem::path& path);

/// Replaces or creates the file atomically, indented. Errors: those of AtomicFile; text that is not UTF-8.
void write_json(const std::filesystem::path& path, const nlohmann::json& value);

}  // namespace headlab
