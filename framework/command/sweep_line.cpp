#include "framework/command/sweep_line.h"

#include <cstdio>
#include <utility>

#include <fmt/format.h>
#include <unistd.h>

#include "framework/report/terminal.h"

namespace headlab {

namespace {

void write(const std::string& text) {
  static_cast<void>(std::fputs(text.c_str(), stderr));
  static_cast<void>(std::fflush(stderr));
}

}  // namespace

SweepLine::SweepLine(std::string before) : before_(std::move(before)), on_(::isatty(STDERR_FILENO) == 1) {}

void SweepLine::show(const SweepProgress& progress) {
  if (!on_) return;
  std::string line = before_ + fmt::format("{} of {} runs", progress.done, progress.total);
  if (progress.elsewhere > 0) line += fmt::format(", {} in another process", progress.elsewhere);
  for (const SweepProgress::Running& run : progress.running) {
    // "h8-s1-0a1b2c3d": the hash says nothing to people.
    line += fmt::format("  {} {}/{}", run.name.substr(0, run.name.rfind('-')), run.step, run.steps);
  }
  const Terminal terminal = this_terminal(STDERR_FILENO);
  if (terminal.width > 1) line = shortened(line, terminal.width - 1, terminal.unicode);
  write(fmt::format("\r{}\x1b[K", line));
}

void SweepLine::end() {
  if (on_) write("\r\x1b[K");
}

}  // namespace headlab
