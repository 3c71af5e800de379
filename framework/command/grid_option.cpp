#include "framework/command/grid_option.h"

#include <algorithm>

#include <fmt/format.h>

#include "framework/core/suggest.h"
#include "framework/report/terminal.h"

namespace headlab {
namespace {

const TrainingNumber& option_named(const std::string& name) {
  std::vector<std::string> names;
  for (const TrainingNumber& number : training_numbers()) {
    if (number.name == name) return number;
    names.push_back(number.name);
  }
  if (name == "heads") throw UsageError("--grid: head counts are compared anyway; --heads lists them");
  const std::string nearest = did_you_mean(name, names);
  throw UsageError(fmt::format("--grid: '{}' is no option with a number{} (allowed: {})", printable(name),
                               nearest, fmt::join(names, ", ")));
}

}  // namespace

GridOption parse_grid(const std::string& text, const TrainingOptions& training) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos) {
    throw UsageError(
        fmt::format("--grid: '{}' is not OPTION=VALUE,VALUE,…, such as lr=0.003,0.01", printable(text)));
  }
  const std::string given = text.substr(0, equals), list = text.substr(equals + 1);
  const TrainingNumber& number = option_named(given.starts_with("--") ? given.substr(2) : given);
  GridOption grid;
  grid.name = number.name;
  const auto add = [&](auto member, const auto& values) {
    if (training.*member) {
      throw UsageError(fmt::format("--grid: --{} is given by itself too; leave one of them out", grid.name));
    }
    for (const auto value : values) {
      grid.values.push_back({fmt::format("{}={}", grid.name, value), training});
      grid.values.back().training.*member = value;
    }
  };
  const std::string where = fmt::format("--grid {}", grid.name);
  as_usage([&] {
    if (number.whole != nullptr) {
      add(number.whole, parse_whole_list(where, list, number.whole_range));
    } else {
      add(number.real, parse_real_list(where, list, number.real_range));
    }
  });
  return grid;
}

}  // namespace headlab
