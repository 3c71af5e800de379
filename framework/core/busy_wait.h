// Waiting without a system call, for what takes less than one.
#pragma once

#include <atomic>
#include <thread>

namespace headlab {

/// Tells the CPU that this thread is waiting, and after a while lets other threads have it.
class BusyWait {
 public:
  static void pause() { __builtin_ia32_pause(); }
  void once() {
    if (++count_ % 256 == 0) {
      std::this_thread::yield();
    } else {
      pause();
    }
  }

 private:
  unsigned count_ = 0;
};

/// A mutex for what takes some ten nanoseconds.
class BusyMutex {
 public:
  void lock() {
    BusyWait wait;
    while (taken_.test_and_set(std::memory_order_acquire)) wait.once();
  }
  void unlock() { taken_.clear(std::memory_order_release); }

 private:
  std::atomic_flag taken_;
};

}  // namespace headlab
