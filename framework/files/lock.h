// Keeps two processes from working in the same folder.
#pragma once

#include <filesystem>
#include <optional>

#include "framework/files/descriptor.h"

namespace headlab {

/// An exclusive lock (flock) of a folder, held while it lives and given up by the system when the process
/// dies, however it dies. It lives on the empty file ".lock" in the folder, which stays. Two locks of one
/// folder exclude each other inside one process too.
class FolderLock {
 public:
  /// Waits until the lock is free. Error: the folder is missing or not writable, or cannot be locked.
  explicit FolderLock(const std::filesystem::path& folder);
  /// Nothing when somebody else holds it. Errors as above.
  static std::optional<FolderLock> try_lock(const std::filesystem::path& folder);

 private:
  explicit FolderLock(Descriptor file) : file_(std::move(file)) {}
  Descriptor file_;
};

}  // namespace headlab
