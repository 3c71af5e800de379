// An open file of the operating system, and checked calls on it. What the other files of this room are built
// from.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>
#include <utility>

namespace headlab {

/// Owns a file descriptor. Not thread-safe.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~Descriptor();

  explicit operator bool() const { return number_ >= 0; }
  int number() const { return number_; }
  /// Closes now. Error: the system reports that something could not be written.
  void close(const std::filesystem::path& path);

 private:
  int number_ = -1;
};

/// Throws Error("<path>: cannot <what>: <the system's reason for errno>").
[[noreturn]] void fail_with_reason(const std::filesystem::path& path, std::string_view what);

/// Opens with O_CLOEXEC. Error: the system refuses.
Descriptor open_file(const std::filesystem::path& path, int flags);

/// Writes all bytes. Error: the system takes fewer; `path` is for its message. A file-size limit is such an
/// error too: the signal that would end the process is ignored from the first call on.
void write_all(const Descriptor& file, const void* data, std::int64_t bytes,
               const std::filesystem::path& path);

/// Reads exactly `bytes` bytes at `offset`. Error: the file is shorter, or cannot be read.
void read_exactly(const Descriptor& file, void* data, std::int64_t bytes, std::int64_t offset,
                  const std::filesystem::path& path);

/// Forces what was written to the disk. Error: the system reports one.
void flush_to_disk(const Descriptor& file, const std::filesystem::path& path);

/// Closed standard streams (0, 1, 2) would lend their numbers to the next files opened, and prints would land
/// in those. Call first thing in main: closed ones get an end that refuses every write.
void guard_standard_streams();

}  // namespace headlab
