#include "framework/files/atomic_file.h"

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <system_error>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "framework/core/check.h"

namespace headlab {
namespace {

constexpr std::string_view temporary_suffix = ".headlab-tmp";

std::filesystem::path folder_of(const std::filesystem::path& path) {
  return path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
}

std::filesystem::path new_temporary_name(const std::filesystem::path& path) {
  static std::atomic<int> number{0};
  return folder_of(path) / fmt::format(".{}.{}-{}{}", path.filename().string(), ::getpid(),
                                       number.fetch_add(1), temporary_suffix);
}

}  // namespace

AtomicFile::AtomicFile(std::filesystem::path path) : path_(std::move(path)) {
  check(path_.has_filename(), path_.string(), "cannot create: not the name of a file");
  struct stat status {};
  if (::stat(path_.c_str(), &status) == 0) {
    // Renaming over a folder fails late, over a device it would replace the device.
    check(S_ISREG(status.st_mode), path_.string(), "cannot replace: not a regular file");
  } else if (errno != ENOENT) {
    fail_with_reason(path_, "create");
  }
  while (true) {
    temporary_ = new_temporary_name(path_);
    const int number = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (number < 0) {
      // EEXIST: left by a killed process that had our number.
      if (errno == EEXIST || errno == EINTR) continue;
      fail_with_reason(path_, "create");
    }
    file_ = Descriptor(number);
    lock_ = Descriptor(::fcntl(number, F_DUPFD_CLOEXEC, 0));
    // A file system without locks is fine: nobody can take the temporary for stale there either.
    static_cast<void>(::flock(number, LOCK_EX | LOCK_NB));
    if (::fstat(number, &status) == 0 && status.st_nlink > 0) return;
    // Somebody removed it as stale before it was locked: take another one.
    file_ = Descriptor();
    lock_ = Descriptor();
  }
}

AtomicFile::~AtomicFile() {
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

void AtomicFile::write(const void* data, std::int64_t bytes) { write_all(file_, data, bytes, path_); }

void AtomicFile::commit() {
  check(static_cast<bool>(file_), path_.string(), "was committed already");
  flush_to_disk(file_, path_);
  file_.close(path_);
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) fail_with_reason(path_, "replace");
  temporary_.clear();
  lock_ = Descriptor();
  const std::filesystem::path folder = folder_of(path_);
  flush_to_disk(open_file(folder, O_RDONLY | O_DIRECTORY), folder);
}

void write_file(const std::filesystem::path& path, std::string_view text) {
  AtomicFile file(path);
  file.write(text);
  file.commit();
}

std::string read_file(const std::filesystem::path& path, std::int64_t limit) {
  const Descriptor file = open_file(path, O_RDONLY | O_NONBLOCK);
  struct stat status {};
  if (::fstat(file.number(), &status) != 0) fail_with_reason(path, "read");
  check(S_ISREG(status.st_mode), path.string(), "cannot read: not a regular file");
  check(status.st_size <= limit, path.string(), "has {} bytes, at most {} are read", status.st_size, limit);
  std::string text(static_cast<std::size_t>(status.st_size), '\0');
  read_exactly(file, text.data(), status.st_size, 0, path);
  return text;
}

bool is_temporary(const std::filesystem::path& path) {
  const std::string name = path.filename().string();
  return name.size() > temporary_suffix.size() && name.front() == '.' &&
         std::string_view(name).substr(name.size() - temporary_suffix.size()) == temporary_suffix;
}

int remove_stale_temporaries(const std::filesystem::path& folder) {
  int removed = 0;
  std::error_code error;
  std::filesystem::directory_iterator entry(folder, error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    const std::filesystem::path path = entry->path();
    if (!is_temporary(path)) continue;
    const Descriptor file(::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOFOLLOW));
    if (!file || ::flock(file.number(), LOCK_EX | LOCK_NB) != 0) continue;  // gone, or being written
    if (::unlink(path.c_str()) == 0) {
      ++removed;
    } else if (errno != ENOENT) {
      fail_with_reason(path, "remove");
    }
  }
  check(!error, folder.string(), "cannot list: {}", error.message());
  return removed;
}

}  // namespace headlab
