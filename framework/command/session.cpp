#include "framework/command/session.h"

#include <nlohmann/json.hpp>

#include "framework/command/console.h"
#include "framework/core/parallel.h"

namespace headlab {

CommandLine& CommonOptions::add_threads(CommandLine& line) {
  return line.whole("--threads", threads, {0, max_threads}, "threads to use; 0: as many as there are CPUs");
}

CommandLine& CommonOptions::add_seed(CommandLine& line, std::string help) {
  return line.whole("--seed", seed, {0, 1'000'000'000'000'000'000}, std::move(help));
}

CommandLine& CommonOptions::add_out(CommandLine& line, std::string otherwise) {
  return line.text("--out", "DIR", out, "folder for the results", otherwise);
}

CommandLine& CommonOptions::add_json(CommandLine& line) {
  return line.flag("--json", json, "print one JSON object and nothing else on standard output");
}

bool ready(CommandLine& line, const Session& session, const CommonOptions& common) {
  if (!line.read(session.arguments)) {
    print_for_people(line.help());
    return false;
  }
  set_threads(static_cast<int>(common.threads));
  if (common.threads > cpus()) {
    warn(line, fmt::format("--threads: {} is more than the {} CPUs here; that is not faster", common.threads,
                           cpus()));
  }
  return true;
}

std::string typed_again(const CommandLine& line, const Session& session) {
  std::string command = "headlab " + line.name();
  for (const std::string& argument : session.arguments) command.append(" ").append(for_shell(argument));
  return command;
}

void warn(const CommandLine& line, std::string_view text) {
  complain(fmt::format("headlab {}: warning: {}", line.name(), text));
}

Terminal output_terminal() { return this_terminal(1); }

void print_for_people(std::string_view text) {
  print(output_terminal().unicode ? std::string(text) : to_ascii(text));
}

void print_json(const nlohmann::json& json) {
  print(json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
}

}  // namespace headlab
