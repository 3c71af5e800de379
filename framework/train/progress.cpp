#include "framework/train/progress.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include <fmt/format.h>
#include <unistd.h>

namespace headlab {

namespace {

double steady_seconds() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double>(now).count();
}

// 950, 12.3k, 4.5M
std::string short_number(double x) {
  if (x < 1000) return fmt::format("{:.0f}", x);
  return x < 1e6 ? fmt::format("{:.1f}k", x / 1e3) : fmt::format("{:.1f}M", x / 1e6);
}

// 0:42, 12:05, 3:00:00
std::string clock_text(double seconds) {
  const auto s = static_cast<std::int64_t>(std::ceil(std::min(seconds, 1e9)));
  if (s < 3600) return fmt::format("{}:{:02}", s / 60, s % 60);
  return fmt::format("{}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60);
}

}  // namespace

Progress::Progress(Options options) : options_(std::move(options)) {
  if (!options_.seconds) options_.seconds = steady_seconds;
  on_ = options_.always || ::isatty(::fileno(options_.out)) == 1;
}

void Progress::on_start(Model&, const Task&, std::int64_t first_step, std::int64_t steps) {
  first_step_ = first_step;
  tokens_ = 0;
  evaluation_.clear();
  report_ = {.step = first_step, .steps = steps};
  unprinted_ = false;
  started_ = options_.seconds();
  printed_ = started_ - 1;
}

void Progress::on_step(Model&, const StepReport& report) {
  report_ = report;
  tokens_ += report.tokens;
  unprinted_ = true;
  if (on_ && options_.seconds() - printed_ >= 0.1) print();
}

void Progress::on_evaluation(Model&, std::int64_t, const Evaluation& evaluation) {
  evaluation_ = fmt::format("  validation {:.4f}, accuracy {:.3f}", evaluation.loss, evaluation.accuracy);
  unprinted_ = true;
}

void Progress::on_end(Model&) {
  if (on_ && unprinted_) print();
  end_line();
}

void Progress::end_line() {
  if (!open_) return;
  open_ = false;
  static_cast<void>(std::fputc('\n', options_.out));
  static_cast<void>(std::fflush(options_.out));
}

void Progress::print() {
  printed_ = options_.seconds();
  unprinted_ = false;
  open_ = true;
  const double elapsed = std::max(printed_ - started_, 1e-9);
  const std::int64_t done = std::max<std::int64_t>(report_.step - first_step_, 1);
  const double left = elapsed / static_cast<double>(done) * static_cast<double>(report_.steps - report_.step);
  const std::string line = fmt::format(
      "{}step {}/{}  loss {:.4f}  {} tokens/s  {} left{}{}", options_.label, report_.step, report_.steps,
      report_.loss, short_number(static_cast<double>(tokens_) / elapsed), clock_text(left), evaluation_,
      report_.skipped ? "  update skipped: the gradient is not finite" : "");
  // Back to the start of the line; what is left of a longer one before is erased.
  static_cast<void>(std::fputs(("\r" + line + "\x1b[K").c_str(), options_.out));
  static_cast<void>(std::fflush(options_.out));
}

}  // namespace headlab
