// Replacing a file so that at every moment a complete one exists: everything goes to a temporary in the same
// folder, which is flushed to disk, closed and renamed; then the folder is flushed. Whoever is killed on the
// way leaves the previous file and a stale temporary.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "framework/files/descriptor.h"

namespace headlab {

/// A file being written. Every failure throws Error naming the path and the system's reason; the previous
/// file is untouched then and the temporary removed. Not thread-safe; several may write the same path at the
/// same time, the last commit() wins.
class AtomicFile {
 public:
  /// Error: the folder is missing or not writable, or the path is something else than a regular file.
  explicit AtomicFile(std::filesystem::path path);
  /// Without commit() the temporary is removed and the previous file stays.
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(const void* data, std::int64_t bytes);
  void write(std::string_view text) { write(text.data(), static_cast<std::int64_t>(text.size())); }
  /// Makes what was written the file. Once.
  void commit();

 private:
  std::filesystem::path path_;
  std::filesystem::path temporary_;
  Descriptor file_;
  Descriptor lock_;  // shares file_'s lock and outlives its close: marks the temporary as alive
};

/// Replaces or creates a file with this text.
void write_file(const std::filesystem::path& path, std::string_view text);

/// The whole file. Error: it is no regular file, cannot be read, or is longer than `limit` bytes.
std::string read_file(const std::filesystem::path& path, std::int64_t limit = std::int64_t{1} << 30);

/// Whether this is the name of a temporary of AtomicFile: ".<name>.<process>-<number>.headlab-tmp".
bool is_temporary(const std::filesystem::path& path);

/// Removes the temporaries in a folder that no living process is writing; returns how many. Error: the folder
/// cannot be read, or a temporary not removed.
int remove_stale_temporaries(const std::filesystem::path& folder);

}  // namespace headlab
