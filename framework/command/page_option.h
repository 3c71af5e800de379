// --svg, and what a sub-command leaves behind for report.html.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "framework/command/session.h"
#include "framework/report/made_by.h"
#include "framework/train/run.h"

namespace headlab {

/// The command as it would be typed again, and this version.
MadeBy made_by(const CommandLine& line, const Session& session);

class PageOption {
 public:
  void add(CommandLine& line);

  /// Keeps a result as `file` in the folder that the user named. A folder that cannot be written gives a
  /// warning: what was found is shown all the same.
  void keep(const CommandLine& line, const Session& session, const std::filesystem::path& folder,
            std::string_view file, const nlohmann::json& result);
  /// Keeps what training gave, as train.json. A run that is resumed was made by the command that began it.
  void keep_training(const CommandLine& line, const Session& session, const std::filesystem::path& folder,
                     const nlohmann::json& result, bool resumed);
  /// Keeps attention maps of a run's model, as attention.json.
  void keep_attention(const CommandLine& line, const Session& session, const std::filesystem::path& folder,
                      const LoadedRun& run);
  void keep_attention(const CommandLine& line, const Session& session, const std::filesystem::path& folder,
                      Model& model, const Task& task, std::uint64_t seed);
  /// Makes the page anew; returns a line that says where it is, empty after a warning.
  std::string write(const CommandLine& line, const std::filesystem::path& folder) const;

 private:
  void keep(const CommandLine& line, const std::filesystem::path& folder, std::string_view file,
            const nlohmann::json& result, const MadeBy& made_by);

  bool svg_ = false;
  bool failed_ = false;
};

}  // namespace headlab
