// What every sub-command gets and shares.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "framework/command/options.h"
#include "framework/report/terminal.h"
#include "framework/train/catalogue.h"

namespace headlab {

struct Session {
  const Catalogue& catalogue;
  std::span<const std::string> arguments;  ///< behind the sub-command's name
};

/// Options that mean the same in every sub-command that has them.
struct CommonOptions {
  std::int64_t threads = 0;
  std::int64_t seed = 0;
  std::optional<std::string> out;
  bool json = false;

  CommandLine& add_threads(CommandLine& line);
  CommandLine& add_seed(CommandLine& line, std::string help);
  CommandLine& add_out(CommandLine& line, std::string otherwise);
  CommandLine& add_json(CommandLine& line);

  std::uint64_t seed_number() const { return static_cast<std::uint64_t>(seed); }
};

/// Reads the arguments; true when there is work to do, false after help was printed. Sets the number of
/// threads, with a warning for more than there are CPUs.
bool ready(CommandLine& line, const Session& session, const CommonOptions& common);

/// The command as it would be typed again: "headlab ablate offsets --seeds 7".
std::string typed_again(const CommandLine& line, const Session& session);

/// "headlab train: warning: …" on standard error.
void warn(const CommandLine& line, std::string_view text);

/// Standard output; what it cannot show is written in ASCII.
Terminal output_terminal();
void print_for_people(std::string_view text);
/// One JSON object and a line end. Numbers that are not finite become null.
void print_json(const nlohmann::json& json);

}  // namespace headlab
