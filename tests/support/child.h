// Running something in a process of its own: limits, closed streams, kills.
#pragma once

#include <cstdlib>
#include <exception>
#include <string>
#include <string_view>

#include <sys/wait.h>
#include <unistd.h>

#include "framework/core/check.h"

namespace headlab {

/// Runs f in a child process and returns the text that it returns, or "error: …" with what it threw, or
/// "signal N" or "status N" when it ended otherwise. For tests that have no other threads.
template <class F>
std::string in_child(F&& f) {
  int ends[2];
  check(::pipe(ends) == 0, "in_child", "no pipe");
  const pid_t child = ::fork();
  check(child >= 0, "in_child", "no process");
  if (child == 0) {
    ::close(ends[0]);
    std::string text;
    try {
      text = f();
    } catch (const std::exception& error) {
      text = std::string("error: ") + error.what();
    }
    std::string_view rest = text;
    while (!rest.empty()) {
      const ssize_t written = ::write(ends[1], rest.data(), rest.size());
      if (written <= 0) std::_Exit(99);
      rest.remove_prefix(static_cast<std::size_t>(written));
    }
    std::_Exit(0);
  }
  ::close(ends[1]);
  std::string text;
  char buffer[4096];
  for (ssize_t got = 0; (got = ::read(ends[0], buffer, sizeof buffer)) > 0;) {
    text.append(buffer, static_cast<std::size_t>(got));
  }
  ::close(ends[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  if (WIFSIGNALED(status)) return "signal " + std::to_string(WTERMSIG(status));
  if (WEXITSTATUS(status) != 0) return "status " + std::to_string(WEXITSTATUS(status));
  return text;
}

}  // namespace headlab
