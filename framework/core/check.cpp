#include "framework/core/check.h"

namespace headlab::detail {

void throw_error(std::string_view where, fmt::string_view format, fmt::format_args arguments) {
  throw Error(fmt::format("{}: {}", where, fmt::vformat(format, arguments)));
}

}  // namespace headlab::detail
