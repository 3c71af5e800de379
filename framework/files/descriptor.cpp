#include "framework/files/descriptor.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>

#include <fcntl.h>
#include <unistd.h>

#include "framework/core/check.h"

namespace headlab {
namespace {

// The default action of SIGXFSZ ends the process without a word; ignored, write() returns EFBIG. A handler
// that the program installed itself is left alone.
void ignore_file_size_signal() {
  struct sigaction current {};
  if (sigaction(SIGXFSZ, nullptr, &current) == 0 && current.sa_handler == SIG_DFL) {
    std::signal(SIGXFSZ, SIG_IGN);
  }
}

// The kernel moves at most about 2 GiB a call.
constexpr std::int64_t most_per_call = std::int64_t{1} << 30;

}  // namespace

Descriptor::~Descriptor() {
  if (number_ >= 0) ::close(number_);
}

void Descriptor::close(const std::filesystem::path& path) {
  const int number = std::exchange(number_, -1);
  // After EINTR Linux has closed the descriptor all the same.
  if (number >= 0 && ::close(number) != 0 && errno != EINTR) fail_with_reason(path, "close");
}

void fail_with_reason(const std::filesystem::path& path, std::string_view what) {
  const int reason = errno;
  fail(path.string(), "cannot {}: {}", what, std::strerror(reason));
}

Descriptor open_file(const std::filesystem::path& path, int flags) {
  int number = -1;
  do {
    number = ::open(path.c_str(), flags | O_CLOEXEC, 0666);
  } while (number < 0 && errno == EINTR);
  if (number < 0) fail_with_reason(path, (flags & O_CREAT) != 0 ? "create" : "open");
  return Descriptor(number);
}

void write_all(const Descriptor& file, const void* data, std::int64_t bytes,
               const std::filesystem::path& path) {
  static const bool ignored = (ignore_file_size_signal(), true);
  static_cast<void>(ignored);
  const char* next = static_cast<const char*>(data);
  while (bytes > 0) {
    const auto written =
        ::write(file.number(), next, static_cast<std::size_t>(std::min(bytes, most_per_call)));
    if (written < 0) {
      if (errno == EINTR) continue;
      fail_with_reason(path, "write");
    }
    next += written;
    bytes -= written;
  }
}

void read_exactly(const Descriptor& file, void* data, std::int64_t bytes, std::int64_t offset,
                  const std::filesystem::path& path) {
  char* next = static_cast<char*>(data);
  while (bytes > 0) {
    const auto got =
        ::pread(file.number(), next, static_cast<std::size_t>(std::min(bytes, most_per_call)), offset);
    if (got < 0) {
      if (errno == EINTR) continue;
      fail_with_reason(path, "read");
    }
    check(got > 0, path.string(), "ends at byte {}, {} bytes before what was expected", offset, bytes);
    next += got;
    offset += got;
    bytes -= got;
  }
}

void flush_to_disk(const Descriptor& file, const std::filesystem::path& path) {
  int result = 0;
  do {
    result = ::fsync(file.number());
  } while (result != 0 && errno == EINTR);
  // EINVAL: a pipe, a device or a file system that has no such thing as flushing.
  if (result != 0 && errno != EINVAL) fail_with_reason(path, "flush to disk");
}

void guard_standard_streams() {
  for (const int stream : {0, 1, 2}) {
    if (::fcntl(stream, F_GETFD) >= 0 || errno != EBADF) continue;
    // open() takes the lowest free number: this one. Opened the wrong way round, so that use is an error.
    if (::open("/dev/null", stream == 0 ? O_WRONLY : O_RDONLY) < 0) return;
  }
}

}  // namespace headlab
