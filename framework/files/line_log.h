// A text file that only grows, line by line: metrics.jsonl.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "framework/files/descriptor.h"

namespace headlab {

/// Every line is handed to the system whole and at once, so that an error is met where it happens and a
/// killed process loses nothing that was appended. Errors name the path and the system's reason; a line that
/// did not fit is taken back. Not thread-safe.
class LineLog {
 public:
  /// Opens for appending, creating the file. A last line without its end, left by a killed process, is cut
  /// off. Error: cannot be created or written.
  explicit LineLog(std::filesystem::path path);
  /// Writes to an open stream (1 is standard output), which it does not close. `name` is for messages.
  LineLog(int stream, std::string name);
  /// Closes; errors are lost here, so call close() where they matter.
  ~LineLog() = default;
  LineLog(LineLog&&) noexcept = default;
  LineLog& operator=(LineLog&&) noexcept = default;

  /// Adds `line` and a line feed. Error: the line holds a line feed itself, or cannot be written.
  void append(std::string_view line);
  /// Forces everything to the disk.
  void flush();
  void close();

 private:
  std::filesystem::path path_;
  Descriptor file_;
  std::int64_t size_ = -1;  // of the whole lines; -1: not a regular file
};

/// The lines of a text file without their ends. A last line without an end is left out.
std::vector<std::string> read_lines(const std::filesystem::path& path);

/// Replaces the file atomically by its first `count` lines: what a resumed run does with lines from after its
/// checkpoint. Error: it has fewer.
void keep_lines(const std::filesystem::path& path, std::int64_t count);

}  // namespace headlab
