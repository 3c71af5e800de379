#include "framework/command/options.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "framework/core/suggest.h"
#include "framework/report/terminal.h"

namespace headlab {

namespace {

constexpr std::int64_t help_width = 98;

/// Limits from here on only keep sizes sane, and say nothing to a reader.
constexpr double large = 1e6;

std::string range_text(WholeRange range) {
  if (static_cast<double>(range.max) >= large) return fmt::format("from {}", range.min);
  return fmt::format("{} … {}", range.min, range.max);
}

std::string range_text(RealRange range) {
  const bool open = range.max >= large;
  if (range.above_min)
    return open ? fmt::format("above {}", range.min)
                : fmt::format("above {}, up to {}", range.min, range.max);
  return open ? fmt::format("from {}", range.min) : fmt::format("{} … {}", range.min, range.max);
}

std::string default_text(std::string_view fallback) {
  return fallback.empty() ? "" : fmt::format("default: {}", fallback);
}

std::string in_brackets(std::string_view range, std::string_view fallback) {
  return fmt::format("({}{}{})", range, fallback.empty() ? "" : "; ", default_text(fallback));
}

/// `name` padded to `indent` columns, then the text, wrapped at blanks with a hanging indent.
std::string entry(const std::string& name, std::string_view text, std::int64_t indent) {
  std::string result = padded_right(fmt::format("  {}", name), indent);
  std::int64_t column = indent;
  bool first = true;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    const std::string word(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    const std::int64_t width = display_width(word);
    if (!first && column + 1 + width > help_width) {
      result.append("\n").append(static_cast<std::size_t>(indent), ' ');
      column = indent;
      first = true;
    }
    result += (first ? "" : " ") + word;
    column += width + (first ? 0 : 1);
    first = false;
  }
  return result + "\n";
}

}  // namespace

CommandLine::CommandLine(std::string name, std::string summary)
    : name_(std::move(name)), summary_(std::move(summary)) {}

CommandLine& CommandLine::argument(std::string name, std::optional<std::string>& into, std::string help,
                                   bool required) {
  argument_ = &into;
  argument_name_ = std::move(name);
  argument_help_ = std::move(help);
  argument_required_ = required;
  return *this;
}

CommandLine& CommandLine::arguments(std::string name, std::vector<std::string>& into, std::string help) {
  arguments_ = &into;
  argument_name_ = std::move(name);
  argument_help_ = std::move(help);
  return *this;
}

CommandLine& CommandLine::add(Option option) {
  options_.push_back(std::move(option));
  return *this;
}

CommandLine& CommandLine::group(std::string heading) { return add({"", "", std::move(heading), "", {}}); }

CommandLine& CommandLine::flag(std::string option, bool& into, std::string help) {
  return add({std::move(option), "", std::move(help), "", [&into](std::string_view) { into = true; }});
}

CommandLine& CommandLine::text(std::string option, std::string value, std::optional<std::string>& into,
                               std::string help, const std::string& otherwise) {
  const std::string fallback = otherwise.empty() ? "" : fmt::format("({})", default_text(otherwise));
  return add({std::move(option), std::move(value), std::move(help), fallback,
              [&into](std::string_view text) { into = std::string(text); }});
}

CommandLine& CommandLine::flag_or_text(std::string option, std::string value, bool& given,
                                       std::optional<std::string>& into, std::string help,
                                       const std::string& otherwise) {
  const std::string fallback = otherwise.empty() ? "" : fmt::format("({})", default_text(otherwise));
  return add({std::move(option), "", std::move(help), fallback, [&given](std::string_view) { given = true; },
              std::move(value), [&into](std::string_view text) { into = std::string(text); }});
}

CommandLine& CommandLine::whole(const std::string& option, std::int64_t& into, WholeRange range,
                                std::string help) {
  const std::string fallback = in_brackets(range_text(range), fmt::format("{}", into));
  return add({option, "N", std::move(help), fallback,
              [option, &into, range](std::string_view text) { into = parse_whole(option, text, range); }});
}

CommandLine& CommandLine::whole(const std::string& option, std::optional<std::int64_t>& into,
                                WholeRange range, std::string help, const std::string& otherwise) {
  const std::string fallback = in_brackets(range_text(range), otherwise);
  return add({option, "N", std::move(help), fallback,
              [option, &into, range](std::string_view text) { into = parse_whole(option, text, range); }});
}

CommandLine& CommandLine::real(const std::string& option, double& into, RealRange range, std::string help) {
  const std::string fallback = in_brackets(range_text(range), fmt::format("{}", into));
  return add({option, "X", std::move(help), fallback,
              [option, &into, range](std::string_view text) { into = parse_real(option, text, range); }});
}

CommandLine& CommandLine::real(const std::string& option, std::optional<double>& into, RealRange range,
                               std::string help, const std::string& otherwise) {
  const std::string fallback = in_brackets(range_text(range), otherwise);
  return add({option, "X", std::move(help), fallback,
              [option, &into, range](std::string_view text) { into = parse_real(option, text, range); }});
}

CommandLine& CommandLine::whole_list(const std::string& option, std::vector<std::int64_t>& into,
                                     WholeRange range, std::string help) {
  const std::string fallback = in_brackets(range_text(range), fmt::format("{}", fmt::join(into, ",")));
  return add({option, "N,N,…", std::move(help), fallback, [option, &into, range](std::string_view text) {
                into = parse_whole_list(option, text, range);
              }});
}

CommandLine& CommandLine::real_list(const std::string& option, std::vector<double>& into, RealRange range,
                                    std::string help) {
  const std::string fallback =
      in_brackets(range_text(range), into.empty() ? "" : fmt::format("{}", fmt::join(into, ",")));
  return add({option, "X,X,…", std::move(help), fallback, [option, &into, range](std::string_view text) {
                into = parse_real_list(option, text, range);
              }});
}

CommandLine& CommandLine::example(std::string line, std::string effect) {
  examples_.emplace_back(std::move(line), std::move(effect));
  return *this;
}

const CommandLine::Option* CommandLine::find(std::string_view name) const {
  const auto found = std::find_if(options_.begin(), options_.end(),
                                  [&](const Option& o) { return !o.name.empty() && o.name == name; });
  return found == options_.end() ? nullptr : &*found;
}

void CommandLine::refuse_unknown(const std::string& argument) const {
  if (!argument.starts_with("-")) {
    throw UsageError(
        fmt::format("unexpected argument '{}'; see headlab {} --help", printable(argument), name_));
  }
  const std::string name = argument.substr(0, argument.find('='));
  std::vector<std::string> names{"--help"};
  for (const Option& option : options_) {
    if (!option.name.empty()) names.push_back(option.name);
  }
  throw UsageError(fmt::format("unknown option '{}'{}; see headlab {} --help", printable(name),
                               did_you_mean(name, names), name_));
}

CommandLine::Apart CommandLine::with_values_apart(std::span<const std::string> arguments) const {
  Apart result;
  for (const std::string& argument : arguments) {
    const std::size_t equals = argument.find('=');
    const Option* option = find(std::string_view(argument).substr(0, equals));
    if (equals == std::string::npos || option == nullptr) {
      result.arguments.push_back(argument);
      continue;
    }
    const std::string value = argument.substr(equals + 1);
    result.arguments.push_back(option->name);
    if (!option->value.empty()) {
      result.arguments.push_back(value);
      continue;
    }
    if (option->may_have.empty()) throw UsageError(option->name + ": takes no value");
    if (value.empty()) throw UsageError(option->name + ": the value is missing");
    result.values[option->name] = value;
  }
  return result;
}

std::string CommandLine::Option::shown() const {
  if (!may_have.empty()) return fmt::format("{}[={}]", name, may_have);
  return value.empty() ? name : name + " " + value;
}

std::string CommandLine::help() const {
  std::string text = fmt::format("headlab {}: {}\n\nUsage: headlab {}", name_, summary_, name_);
  const bool takes_argument = argument_ != nullptr || arguments_ != nullptr;
  if (takes_argument) {
    text += argument_required_ ? fmt::format(" {}", argument_name_) : fmt::format(" [{}]", argument_name_);
  }
  text += options_.empty() ? "\n\n" : " [options]\n\n";
  std::int64_t indent = 14;  // "  -h, --help  "
  for (const Option& option : options_) {
    if (!option.name.empty()) {
      indent = std::max(indent, display_width(option.shown()) + 4);
    }
  }
  if (takes_argument) text += entry(argument_name_, argument_help_, indent) + "\n";
  bool after_options = false;
  for (const Option& option : options_) {
    if (option.name.empty()) {
      text += (after_options ? "\n" : "") + option.help + ":\n";
    } else {
      text +=
          entry(option.shown(), option.help + (option.fallback.empty() ? "" : " ") + option.fallback, indent);
      after_options = true;
    }
  }
  text += entry("-h, --help", "this text", indent) + "\nExamples:\n";
  for (const auto& [line, effect] : examples_) {
    text += fmt::format("  {}\n      {}\n", line, effect);
  }
  return text;
}

}  // namespace headlab
