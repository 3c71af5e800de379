#include "framework/files/lock.h"

#include <cerrno>

#include <fcntl.h>
#include <sys/file.h>

namespace headlab {
namespace {

Descriptor open_lock(const std::filesystem::path& folder) {
  return open_file(folder / ".lock", O_RDWR | O_CREAT);
}

}  // namespace

FolderLock::FolderLock(const std::filesystem::path& folder) : file_(open_lock(folder)) {
  while (::flock(file_.number(), LOCK_EX) != 0) {
    if (errno != EINTR) fail_with_reason(folder, "lock");
  }
}

std::optional<FolderLock> FolderLock::try_lock(const std::filesystem::path& folder) {
  Descriptor file = open_lock(folder);
  while (::flock(file.number(), LOCK_EX | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK) return std::nullopt;
    if (errno != EINTR) fail_with_reason(folder, "lock");
  }
  return FolderLock(std::move(file));
}

}  // namespace headlab
