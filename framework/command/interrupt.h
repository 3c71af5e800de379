// Ctrl-C that finishes the step and saves.
#pragma once

#include <atomic>

namespace headlab {

/// While it lives, the first SIGINT or SIGTERM only sets flag(); the second ends the process as usual. A
/// signal that was ignored before (nohup) stays ignored. One at a time.
class Interrupt {
 public:
  Interrupt();
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  const std::atomic<bool>* flag() const;
};

/// What a shell reports for a process ended by Ctrl-C.
constexpr int interrupted_status = 130;

}  // namespace headlab
