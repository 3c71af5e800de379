#include "framework/command/profile_option.h"

#include "framework/report/profile.h"

namespace headlab {

void ProfileOption::add(CommandLine& line, const std::string& otherwise) {
  line.flag_or_text(
      "--profile", "FILE", wanted_, file_,
      "say which operations and layers take the time, and write a trace for chrome://tracing or "
      "ui.perfetto.dev",
      otherwise);
}

void ProfileOption::start() {
  if (wanted_) recording_.emplace();
}

std::string ProfileOption::finish(const std::filesystem::path& otherwise) {
  if (!recording_) return {};
  const profile::Profile profile = recording_->stop();
  recording_.reset();
  const std::filesystem::path file = file_ ? std::filesystem::path(*file_) : otherwise;
  write_trace(file, profile);
  std::string text = "\n";
  text += profile_tables(profile, output_terminal());
  text +=
      fmt::format("The trace is in {}{}; chrome://tracing and ui.perfetto.dev show it.\n", file.string(),
                  profile.left_out > 0 ? fmt::format(" (its first {} spans)", profile.events.size()) : "");
  return text;
}

}  // namespace headlab
