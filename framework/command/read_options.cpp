// The only source that knows CLI11: it takes the command line apart. Every value reaches our own strict
// readers as text, since CLI11's conversions accept more than we do.
#include <map>

#include <CLI/CLI.hpp>

#include "framework/command/options.h"

namespace headlab {

bool CommandLine::read(std::span<const std::string> arguments) {
  for (const std::string& argument : arguments) {
    if (argument == "--help" || argument == "-h") return false;
  }
  const Apart split = with_values_apart(arguments);
  const std::vector<std::string>& apart = split.arguments;
  // CLI11 gives an option the next argument as its value, whatever it is.
  for (std::size_t i = 0; i < apart.size(); ++i) {
    const Option* option = find(apart[i]);
    if (option == nullptr || option->value.empty()) continue;
    const bool missing = i + 1 == apart.size() || find(apart[i + 1]) != nullptr;
    if (missing) throw UsageError(option->name + ": the value is missing");
    ++i;
  }

  CLI::App app;
  app.set_help_flag();
  app.allow_extras();
  std::map<std::string, CLI::Option*> given;
  std::vector<std::string> values;
  for (const Option& option : options_) {
    if (option.name.empty()) continue;
    given[option.name] =
        option.value.empty() ? app.add_flag(option.name) : app.add_option(option.name)->expected(1);
    given[option.name]->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  }
  CLI::Option* positional = argument_ == nullptr ? nullptr : app.add_option(argument_name_)->expected(1);
  CLI::Option* list = arguments_ == nullptr ? nullptr : app.add_option(argument_name_)->expected(-1);
  if (list != nullptr) list->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  try {
    std::vector<std::string> reversed(apart.rbegin(), apart.rend());
    app.parse(std::move(reversed));
  } catch (const CLI::Error& error) {
    throw UsageError(fmt::format("{}; see headlab {} --help", error.what(), name_));
  }
  const std::vector<std::string> left = app.remaining();
  for (const std::string& argument : left) {
    if (argument.starts_with("-") && argument != "--") refuse_unknown(argument);
  }
  for (const std::string& argument : left) {
    if (argument != "--") refuse_unknown(argument);
  }
  for (const Option& option : options_) {
    if (option.name.empty() || given[option.name]->count() == 0) continue;
    if (given[option.name]->count() > 1) throw UsageError(option.name + ": given twice");
    as_usage([&] { option.set(option.value.empty() ? "" : given[option.name]->results().front()); });
    if (const auto value = split.values.find(option.name); value != split.values.end()) {
      as_usage([&] { option.set_value(value->second); });
    }
  }
  if (positional != nullptr && positional->count() > 0) *argument_ = positional->results().front();
  if (list != nullptr) *arguments_ = list->results();
  if (argument_required_ && !argument_->has_value()) {
    throw UsageError(fmt::format("{} is missing; see headlab {} --help", argument_name_, name_));
  }
  return true;
}

}  // namespace headlab
