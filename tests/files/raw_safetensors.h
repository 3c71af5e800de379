// Writing files as a stranger, or an enemy, would.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

namespace headlab {

inline void write_raw(const std::filesystem::path& path, std::uint64_t header_length,
                      const std::string& header, const std::string& data = "") {
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(&header_length), sizeof header_length);
  file << header << data;
}

inline void write_raw(const std::filesystem::path& path, const std::string& header,
                      const std::string& data = "") {
  write_raw(path, header.size(), header, data);
}

}  // namespace headlab
