#include "framework/files/line_log.h"

#include <cerrno>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "framework/core/check.h"
#include "framework/files/atomic_file.h"

namespace headlab {
namespace {

// Where the last whole line of a file ends.
std::int64_t end_of_whole_lines(const Descriptor& file, std::int64_t size,
                                const std::filesystem::path& path) {
  while (size > 0) {
    char last = 0;
    read_exactly(file, &last, 1, size - 1, path);
    if (last == '\n') break;
    --size;
  }
  return size;
}

}  // namespace

LineLog::LineLog(std::filesystem::path path)
    : path_(std::move(path)), file_(open_file(path_, O_RDWR | O_APPEND | O_CREAT)) {
  struct stat status {};
  if (::fstat(file_.number(), &status) != 0) fail_with_reason(path_, "open");
  if (!S_ISREG(status.st_mode)) return;
  size_ = end_of_whole_lines(file_, status.st_size, path_);
  if (size_ < status.st_size && ::ftruncate(file_.number(), size_) != 0) {
    fail_with_reason(path_, "cut off the half last line");
  }
}

LineLog::LineLog(int stream, std::string name) : path_(std::move(name)) {
  const int number = ::fcntl(stream, F_DUPFD_CLOEXEC, 0);
  if (number < 0) fail_with_reason(path_, "open");
  file_ = Descriptor(number);
}

void LineLog::append(std::string_view line) {
  check(line.find('\n') == std::string_view::npos, path_.string(), "a line holds a line feed");
  std::string text(line);
  text += '\n';
  try {
    write_all(file_, text.data(), static_cast<std::int64_t>(text.size()), path_);
  } catch (const Error&) {
    if (size_ >= 0) static_cast<void>(::ftruncate(file_.number(), size_));
    throw;
  }
  if (size_ >= 0) size_ += static_cast<std::int64_t>(text.size());
}

void LineLog::flush() { flush_to_disk(file_, path_); }

void LineLog::close() { file_.close(path_); }

std::vector<std::string> read_lines(const std::filesystem::path& path) {
  const std::string text = read_file(path);
  std::vector<std::string> lines;
  std::size_t begin = 0;
  for (std::size_t end = text.find('\n'); end != std::string::npos; end = text.find('\n', begin)) {
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

void keep_lines(const std::filesystem::path& path, std::int64_t count) {
  const std::string text = read_file(path);
  std::size_t end = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    end = text.find('\n', end);
    check(end != std::string::npos, path.string(), "has {} whole lines, {} are wanted", i, count);
    ++end;
  }
  write_file(path, std::string_view(text).substr(0, end));
}

}  // namespace headlab
