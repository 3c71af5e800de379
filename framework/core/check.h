// The one place where error messages are made. They read "op: what is wrong and what was allowed", for
// example
//   softmax: axis 3 is out of range for shape [2, 5, 7]
// and are thrown in release builds too: a user's mistake is never an assert.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/core.h>

namespace headlab {

/// Every error that headlab reports. what() starts with the name of the op, option or file concerned.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

namespace detail {
[[noreturn]] void throw_error(std::string_view where, fmt::string_view format, fmt::format_args arguments);
}

/// Throws Error("where: formatted text").
template <class... Args>
[[noreturn]] void fail(std::string_view where, fmt::format_string<Args...> format, Args&&... args) {
  detail::throw_error(where, format, fmt::make_format_args(args...));
}

/// Throws Error("where: formatted text") unless `ok`. The text is only formatted when the check fails.
template <class... Args>
void check(bool ok, std::string_view where, fmt::format_string<Args...> format, Args&&... args) {
  if (!ok) [[unlikely]] {
    detail::throw_error(where, format, fmt::make_format_args(args...));
  }
}

}  // namespace headlab
