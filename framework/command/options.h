// What a sub-command takes, declared once: names, kinds of values, ranges, defaults, help. Reading a command
// line and the help text both follow from the declaration.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "framework/command/numbers.h"
#include "framework/core/check.h"

namespace headlab {

/// A command line that cannot be followed: exit status 2. Any other Error is a failure: exit status 1.
class UsageError : public Error {
 public:
  using Error::Error;
};

/// Runs f; an Error that it throws becomes a UsageError with the same text.
template <class F>
auto as_usage(const F& f) {
  try {
    return f();
  } catch (const Error& error) {
    throw UsageError(error.what());
  }
}

/// Options with their targets, which must outlive it and keep their values where an option is not given;
/// those values are the defaults that the help shows. Optional targets stay empty; `otherwise` says what is
/// done then. Not thread-safe.
class CommandLine {
 public:
  /// `name` as typed, "train"; `summary` in one line, starting with a small letter.
  CommandLine(std::string name, std::string summary);

  /// The one argument without dashes. `required`: an error when it is missing.
  CommandLine& argument(std::string name, std::optional<std::string>& into, std::string help, bool required);
  /// Any number of arguments without dashes.
  CommandLine& arguments(std::string name, std::vector<std::string>& into, std::string help);
  /// A heading for the options that follow.
  CommandLine& group(std::string heading);
  CommandLine& flag(std::string option, bool& into, std::string help);
  CommandLine& text(std::string option, std::string value, std::optional<std::string>& into, std::string help,
                    const std::string& otherwise = "");
  /// `--option` alone, or with a value behind '=': what stands behind a blank is another argument.
  CommandLine& flag_or_text(std::string option, std::string value, bool& given,
                            std::optional<std::string>& into, std::string help,
                            const std::string& otherwise = "");
  CommandLine& whole(const std::string& option, std::int64_t& into, WholeRange range, std::string help);
  CommandLine& whole(const std::string& option, std::optional<std::int64_t>& into, WholeRange range,
                     std::string help, const std::string& otherwise = "");
  CommandLine& real(const std::string& option, double& into, RealRange range, std::string help);
  CommandLine& real(const std::string& option, std::optional<double>& into, RealRange range, std::string help,
                    const std::string& otherwise = "");
  CommandLine& whole_list(const std::string& option, std::vector<std::int64_t>& into, WholeRange range,
                          std::string help);
  CommandLine& real_list(const std::string& option, std::vector<double>& into, RealRange range,
                         std::string help);
  /// A whole command line and what it does.
  CommandLine& example(std::string line, std::string effect);

  /// Reads what follows the sub-command's name, fills the targets and returns true; false when help is asked
  /// for, then nothing else is read. Both "--steps 5" and "--steps=5" are understood. Errors (UsageError): an
  /// unknown option (with the nearest one), a missing or refused value, an option given twice.
  bool read(std::span<const std::string> arguments);

  const std::string& name() const { return name_; }
  const std::string& summary() const { return summary_; }
  std::string help() const;

 private:
  struct Option {
    std::string name;   // "--steps"; empty for a heading
    std::string value;  // "N"; empty for a flag
    std::string help, fallback;
    std::function<void(std::string_view)> set;
    std::string may_have = {};  // of a flag: "FILE" that may stand behind '='
    std::function<void(std::string_view)> set_value = {};
    std::string shown() const;
  };
  CommandLine& add(Option option);
  const Option* find(std::string_view name) const;
  [[noreturn]] void refuse_unknown(const std::string& argument) const;
  struct Apart {
    std::vector<std::string> arguments;         // "--steps=5" as "--steps", "5"
    std::map<std::string, std::string> values;  // of flags that may have one
  };
  Apart with_values_apart(std::span<const std::string> arguments) const;

  std::string name_, summary_;
  std::optional<std::string>* argument_ = nullptr;
  std::vector<std::string>* arguments_ = nullptr;  // in place of it
  std::string argument_name_, argument_help_;
  bool argument_required_ = false;
  std::vector<Option> options_;
  std::vector<std::pair<std::string, std::string>> examples_;
};

}  // namespace headlab
