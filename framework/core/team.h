// The threads behind parallel loops. For parallel.cpp only.
//
// A training step is hundreds of loops of some ten microseconds each, so how fast a loop starts and ends
// decides whether threads pay. Helpers are therefore tasks that stay: after a loop they watch for the next
// one for a while, and only then go back to TBB, which puts their thread to sleep. The thread that starts a
// loop takes chunks of it like everybody else, so that a helper that comes late, or never, costs nothing.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>

namespace headlab::detail {

/// A loop whose chunks several threads take. Each thread has a range of its own, the same in every loop of so
/// many chunks, so that it meets the numbers that it has in its cache; then it helps the others.
class SharedLoop {
 public:
  using Body = void (*)(const void* context, std::int64_t chunk);
  SharedLoop(std::int64_t chunks, int threads, Body body, const void* context);

  /// Takes chunks until none is left. At most `limit` chunks run at the same moment in this process.
  void work(int thread, int limit);
  /// For the caller, when all threads have left: throws the first exception of a body.
  void rethrow();

 private:
  bool take(int range, std::int64_t& chunk);

  static constexpr int most_ranges = 16;
  struct alignas(64) Range {
    std::atomic<std::int64_t> next{0};
    std::int64_t end = 0;
  };
  Body body_;
  const void* context_;
  int ranges_;
  std::atomic<bool> failed_{false};
  std::mutex mutex_;
  std::exception_ptr failure_;
  std::array<Range, most_ranges> range_;
};

class Team {
 public:
  /// The team of so many threads, the callers of loops included. Teams live as long as the process.
  static Team& of(int threads);

  /// Runs the loop on the caller's thread and on helpers, and returns when all of it is done.
  void run(SharedLoop& loop, std::int64_t chunks);

 private:
  explicit Team(int threads);
  void call_helpers(int wanted);
  void help();
  bool help_somebody(int thread);
  bool anything_open() const;

  /// Where a loop is offered. A helper enters before it looks at `loop`; the caller closes it and waits until
  /// nobody is inside any more, since the loop lives on the caller's stack.
  struct alignas(64) Offer {
    std::atomic<bool> taken{false};  ///< by a caller
    std::atomic<bool> open{false};   ///< chunks may be left
    std::atomic<SharedLoop*> loop{nullptr};
    std::atomic<int> inside{0};
  };
  struct Workers;  // TBB's arena

  int threads_;
  bool waits_;  ///< helpers watch for the next loop: not where there are more threads than CPUs
  std::array<Offer, 8> offers_;
  std::atomic<int> helpers_{0};  ///< tasks that run or will
  std::atomic<unsigned> numbers_{0};
  std::unique_ptr<Workers> workers_;
};

/// The most chunks that ran at the same moment since it was last set to 0.
extern std::atomic<int> most_chunks_at_once;

}  // namespace headlab::detail
