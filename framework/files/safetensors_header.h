// The JSON header of a safetensors file; what safetensors.cpp reads and writes.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "framework/files/safetensors.h"

namespace headlab {

struct SafetensorsHeader {
  Metadata metadata;
  std::map<std::string, SafetensorsReader::Entry> entries;
};

/// Reads and checks a header whose data has `data_bytes` bytes. `where` begins the error messages. Nesting,
/// however deep, costs neither stack nor memory: it ends at the first level that the format does not have.
SafetensorsHeader parse_safetensors_header(std::string_view text, std::int64_t data_bytes,
                                           const std::string& where);

/// The format's name of a type, "F32" and so on.
std::string_view safetensors_name_of(DType dtype);

/// A JSON string literal. Error: the text is not UTF-8.
std::string json_string(const std::string& text, const std::string& where);

}  // namespace headlab
