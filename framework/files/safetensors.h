// Safetensors files (https://github.com/huggingface/safetensors): 8 bytes of little-endian header length, a
// JSON header padded with spaces, then the numbers. Any reader opens what is written here.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>

#include "framework/core/array.h"
#include "framework/core/shape.h"
#include "framework/files/descriptor.h"

namespace headlab {

using NamedArrays = std::map<std::string, Array>;
using Metadata = std::map<std::string, std::string>;

struct Safetensors {
  NamedArrays arrays;
  Metadata metadata;
};

/// Longer headers are refused, read or written: 100 MB, the limit of the format's own library.
constexpr std::int64_t safetensors_header_limit = 100'000'000;

/// Replaces or creates the file atomically (see AtomicFile). Equal content gives equal bytes: arrays are laid
/// out by falling size of their elements, so that each is aligned, then by name. Names and metadata are
/// UTF-8. Errors: an absent array; the name "__metadata__"; text that is not UTF-8; all of AtomicFile's.
void write_safetensors(const std::filesystem::path& path, const NamedArrays& arrays,
                       const Metadata& metadata = {});

/// The whole file, all or nothing. Errors: those of SafetensorsReader.
Safetensors read_safetensors(const std::filesystem::path& path);

/// Reads the header at once and arrays when asked. The header is checked wholly before anything is believed:
/// every length and size against the real file size, types F32, F64, I64, U8, at most 8 axes, no name twice,
/// no gap, overlap or rest in the data. Memory is bounded by the file size. Errors, each naming the path: no
/// such file, not a regular file, anything of the above. Reading is thread-safe.
class SafetensorsReader {
 public:
  struct Entry {
    DType dtype = DType::f32;
    Shape shape;
    std::int64_t begin = 0;  ///< first byte, counted from the end of the header
    std::int64_t end = 0;
  };

  explicit SafetensorsReader(std::filesystem::path path);

  const Metadata& metadata() const { return metadata_; }
  const std::map<std::string, Entry>& entries() const { return entries_; }
  bool has(const std::string& name) const { return entries_.count(name) != 0; }
  /// One array. Error: there is none of this name, or the file has changed.
  Array read(const std::string& name) const;

 private:
  std::filesystem::path path_;
  Descriptor file_;
  std::int64_t data_ = 0;  // where the data begins
  Metadata metadata_;
  std::map<std::string, Entry> entries_;
};

}  // namespace headlab
