#include "framework/command/head_list.h"

#include <algorithm>

#include "framework/command/options.h"
#include "framework/report/terminal.h"

namespace headlab {

HeadId parse_head(const std::string& option, const std::string& text) {
  const std::size_t point = text.find('.');
  if (point == std::string::npos) {
    throw UsageError(fmt::format("{}: '{}' is not LAYER.HEAD, such as 0.3", option, printable(text)));
  }
  return as_usage([&] {
    constexpr WholeRange range{0, 1'000'000};
    return HeadId{parse_whole(option + ": layer", text.substr(0, point), range),
                  parse_whole(option + ": head", text.substr(point + 1), range)};
  });
}

HeadList parse_heads(const std::string& option, const std::string& text) {
  HeadList heads;
  std::size_t from = 0;
  while (true) {
    const std::size_t comma = std::min(text.find(',', from), text.size());
    const HeadId id = parse_head(option, text.substr(from, comma - from));
    if (std::find(heads.begin(), heads.end(), id) != heads.end()) {
      throw UsageError(fmt::format("{}: {} comes twice", option, id.str()));
    }
    heads.push_back(id);
    if (comma == text.size()) return heads;
    from = comma + 1;
  }
}

}  // namespace headlab
