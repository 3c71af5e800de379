// Runs the built command as a process of its own.
#pragma once

#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "framework/core/check.h"
#include "framework/files/atomic_file.h"
#include "tests/support/temporary_folder.h"

namespace headlab {

struct ProcessOptions {
  std::string output;         ///< a file for standard output instead of the one that is read back
  bool close_output = false;  ///< standard output is closed
  rlim_t file_size = RLIM_INFINITY;
  /// Asked again and again while the process runs; SIGINT is sent once, as soon as it says so.
  std::function<bool()> interrupt_when = {};
  int signal = SIGINT;
};

struct Ended {
  int status = -1;  ///< exit status, or minus the signal
  std::string out, err;
};

inline std::string text_of(const std::filesystem::path& path) {
  std::error_code error;
  return std::filesystem::exists(path, error) ? read_file(path) : "";
}

class Integration : public testing::Test {
 protected:
  /// Runs in the test's own folder.
  Ended headlab(std::vector<std::string> arguments, const ProcessOptions& options = {}) const {
    const auto out = folder_ / "stdout.txt", err = folder_ / "stderr.txt";
    arguments.insert(arguments.begin(), HEADLAB_COMMAND);
    std::vector<char*> pointers;
    for (std::string& argument : arguments) pointers.push_back(argument.data());
    pointers.push_back(nullptr);
    const pid_t child = ::fork();
    check(child >= 0, "fork", "no process");
    if (child == 0) start(out, err, pointers.data(), options);

    bool signalled = false;
    int status = 0;
    while (::waitpid(child, &status, options.interrupt_when && !signalled ? WNOHANG : 0) == 0) {
      if (options.interrupt_when()) {
        ::kill(child, options.signal);
        signalled = true;
      } else {
        ::usleep(2000);
      }
    }
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status), text_of(out), text_of(err)};
  }

  TemporaryFolder folder_;

 private:
  [[noreturn]] void start(const std::filesystem::path& out, const std::filesystem::path& err,
                          char** arguments, const ProcessOptions& options) const {
    const std::string output = options.output.empty() ? out.string() : options.output;
    const int out_file = ::open(output.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
    const int err_file = ::open(err.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
    ::dup2(out_file, STDOUT_FILENO);
    ::dup2(err_file, STDERR_FILENO);
    if (options.close_output) ::close(STDOUT_FILENO);
    const rlimit limit{options.file_size, options.file_size};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    ::setenv("LC_ALL", "C.UTF-8", 1);
    if (::chdir(folder_.path().c_str()) == 0) ::execv(arguments[0], arguments);
    ::_exit(127);
  }
};

}  // namespace headlab
