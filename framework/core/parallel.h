// Parallel loops. Their threads are TBB's, which only framework/core/team.cpp uses.
//
// Rules that give the same bits for any number of threads: a loop is cut into chunks by the shape alone,
// never by the number of threads; a chunk's result does not depend on who runs it; partial results are merged
// by the caller in chunk order. Flush-to-zero for subnormal numbers is on inside every chunk, on the
// one-thread path too, and restored afterwards.
#pragma once

#include <cstdint>
#include <memory>
#include <type_traits>

namespace headlab {

/// The number of CPUs that this process may use (its affinity mask).
int cpus();
constexpr int max_threads = 256;

/// Threads that a loop started here may use: 1 inside OneThread and inside a chunk, else what set_threads()
/// chose.
int threads();
/// 0 means cpus(). Error: negative, or over max_threads. More than cpus() is allowed. Not to be called inside
/// a loop.
void set_threads(int count);

/// While it lives, loops started by this thread stay on this thread: used by sweeps, which run whole
/// trainings side by side.
class OneThread {
 public:
  OneThread();
  ~OneThread();
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  bool before_;
};

/// Sets flush-to-zero and denormals-are-zero for this thread while it lives.
class FlushToZero {
 public:
  FlushToZero();
  ~FlushToZero();
  FlushToZero(const FlushToZero&) = delete;
  FlushToZero& operator=(const FlushToZero&) = delete;

 private:
  unsigned before_;
};

/// A rough price of one item of a loop, on one core. Only decides whether a loop is worth several threads.
struct Cost {
  double flops = 0;
  double bytes = 0;
  double nanoseconds() const { return flops / 16 + bytes / 8; }
};
/// Loops cheaper than this stay on one thread: another one needs some microseconds to join and to fetch what
/// it reads from the first one's cache.
constexpr double parallel_threshold_nanoseconds = 10'000;

namespace detail {
[[noreturn]] void refuse_grain(std::int64_t grain);
void run_chunks(std::int64_t chunks, bool alone, void (*body)(const void*, std::int64_t),
                const void* context);
}  // namespace detail

/// Runs body(begin, end) over [0, n) in chunks of `grain` items. Error: grain < 1. `per_item` decides whether
/// threads pay. A loop inside a chunk runs on the chunk's thread. An exception from a body reaches the caller
/// once; bodies should not throw all the same: validate before the loop.
template <class Body>
void parallel_for(std::int64_t n, std::int64_t grain, Cost per_item, const Body& body) {
  if (grain < 1) [[unlikely]]
    detail::refuse_grain(grain);
  if (n <= 0) return;
  struct Context {
    std::int64_t n, grain;
    const Body* body;
  } context{n, grain, &body};
  const bool alone = per_item.nanoseconds() * static_cast<double>(n) < parallel_threshold_nanoseconds;
  detail::run_chunks(
      1 + (n - 1) / grain, alone,
      [](const void* opaque, std::int64_t chunk) {
        const auto& c = *static_cast<const Context*>(opaque);
        const std::int64_t begin = chunk * c.grain;
        (*c.body)(begin, c.grain < c.n - begin ? begin + c.grain : c.n);
      },
      &context);
}

/// A grain that makes chunks of about `parallel_threshold_nanoseconds` / 2, from the price of an item alone.
std::int64_t grain_for(Cost per_item);

/// Counters for tests: chunks run at the same moment (largest so far since reset), and loops that used
/// several threads.
struct ParallelCounters {
  int most_at_once = 0;
  std::int64_t parallel_loops = 0;
};
ParallelCounters parallel_counters();
void reset_parallel_counters();

}  // namespace headlab
