#include "framework/core/check.h"

#if defined(__FAST_MATH__) || (defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__ > 0)
#error "headlab relies on NaN and infinity: compile it without -ffast-math and -ffinite-math-only"
#endif

namespace headlab::detail {

void throw_error(std::string_view where, fmt::string_view format, fmt::format_args arguments) {
  throw Error(fmt::format("{}: {}", where, fmt::vformat(format, arguments)));
}

}  // namespace headlab::detail
