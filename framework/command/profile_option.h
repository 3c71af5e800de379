// --profile, of the sub-commands that train or measure.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "framework/command/session.h"
#include "framework/core/profile.h"

namespace headlab {

/// `--profile` or `--profile=FILE`: records what this thread does between start() and finish().
class ProfileOption {
 public:
  /// `otherwise`: where the trace goes unless a file is given, for the help.
  void add(CommandLine& line, const std::string& otherwise);
  bool wanted() const { return wanted_; }
  void start();
  /// Writes the trace, to `otherwise` unless a file was given, and returns the tables and where the trace is;
  /// nothing where no profile is wanted. Error: the file cannot be written.
  std::string finish(const std::filesystem::path& otherwise);

 private:
  bool wanted_ = false;
  std::optional<std::string> file_;
  std::optional<profile::Recording> recording_;
};

}  // namespace headlab
