#include "framework/command/console.h"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <system_error>

#include <fcntl.h>
#include <unistd.h>

#include "framework/core/check.h"
#include "framework/report/terminal.h"

namespace headlab {

namespace {

bool is_closed(int descriptor) { return ::fcntl(descriptor, F_GETFD) == -1 && errno == EBADF; }

[[noreturn]] void fail_output(int error) {
  // What is left in the buffer must not be tried again when the program ends.
  static_cast<void>(std::freopen("/dev/null", "w", stdout));
  fail("standard output", "{}", std::generic_category().message(error));
}

}  // namespace

void prepare_console() {
  std::signal(SIGPIPE, SIG_IGN);
  const bool no_output = is_closed(STDOUT_FILENO);
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (!is_closed(descriptor)) continue;
    const int opened = ::open("/dev/null", O_RDWR);
    if (opened >= 0 && opened != descriptor) {
      ::dup2(opened, descriptor);
      ::close(opened);
    }
  }
  if (no_output) fail("standard output", "is closed");
}

void print(std::string_view text) {
  errno = 0;
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size()) fail_output(errno);
}

void flush_output() {
  errno = 0;
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) fail_output(errno != 0 ? errno : EIO);
}

void complain(std::string_view line) {
  const std::string text = shown_on(this_terminal(STDERR_FILENO), line) + "\n";
  static_cast<void>(std::fwrite(text.data(), 1, text.size(), stderr));
}

std::string for_shell(const std::string& argument) {
  constexpr std::string_view plain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./,=+:@%";
  if (!argument.empty() && argument.find_first_not_of(plain) == std::string::npos) return argument;
  std::string result = "'";
  for (const char c : argument) result += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return result + "'";
}

}  // namespace headlab
