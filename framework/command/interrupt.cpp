#include "framework/command/interrupt.h"

#include <csignal>

namespace headlab {

namespace {

std::atomic<bool> interrupted{false};
static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler may only touch such");

void on_signal(int signal) {
  if (!interrupted.exchange(true)) return;
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

void take(int signal, void (*handler)(int)) {
  struct sigaction before {};
  if (sigaction(signal, nullptr, &before) == 0 && before.sa_handler == SIG_IGN) return;
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  sigaction(signal, &action, nullptr);
}

}  // namespace

Interrupt::Interrupt() {
  interrupted = false;
  take(SIGINT, on_signal);
  take(SIGTERM, on_signal);
}

Interrupt::~Interrupt() {
  take(SIGINT, SIG_DFL);
  take(SIGTERM, SIG_DFL);
}

const std::atomic<bool>* Interrupt::flag() const { return &interrupted; }

}  // namespace headlab
