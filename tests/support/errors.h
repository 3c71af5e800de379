// The text of an error, for tests of messages.
#pragma once

#include <string>

#include <gtest/gtest.h>

#include "framework/core/check.h"

namespace headlab {

/// What the Error thrown by f says; without one the test fails and the text is empty.
template <class F>
std::string error_of(F&& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.what();
  }
  ADD_FAILURE() << "no error was thrown";
  return "";
}

}  // namespace headlab
