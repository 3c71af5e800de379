// A folder for one test.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>

#include "framework/core/check.h"

namespace headlab {

/// A new, empty folder that goes, with what is in it, when the object does.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "headlab-test-XXXXXX").string();
    check(::mkdtemp(name.data()) != nullptr, name, "cannot make a folder");
    path_ = name;
  }
  ~TemporaryFolder() {
    std::error_code error;
    std::filesystem::remove_all(path_, error);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

}  // namespace headlab
