#include "framework/core/parallel.h"

#include <algorithm>
#include <atomic>
#include <cmath>

#include <immintrin.h>
#include <sched.h>

#include "framework/core/check.h"
#include "framework/core/team.h"

namespace headlab {
namespace {

// Whether loops started by this thread stay on it: inside OneThread, or inside a chunk.
thread_local bool alone_here = false;

std::atomic<int> chosen_threads{0};
std::atomic<std::int64_t> parallel_loops{0};

struct Restore {
  bool* flag;
  bool before;
  ~Restore() { *flag = before; }
};

}  // namespace

int cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  return std::clamp(CPU_COUNT(&set), 1, max_threads);
}

int threads() {
  if (alone_here) return 1;
  const int chosen = chosen_threads.load(std::memory_order_relaxed);
  if (chosen > 0) return chosen;
  static const int available = cpus();
  return available;
}

void set_threads(int count) {
  check(count >= 0 && count <= max_threads, "threads", "{} is not in 0 … {} (0 means all {} CPUs)", count,
        max_threads, cpus());
  chosen_threads.store(count == 0 ? cpus() : count, std::memory_order_relaxed);
}

OneThread::OneThread() : before_(alone_here) { alone_here = true; }
OneThread::~OneThread() { alone_here = before_; }

FlushToZero::FlushToZero() : before_(_mm_getcsr()) {
  constexpr unsigned flush_to_zero = 0x8000;
  constexpr unsigned denormals_are_zero = 0x0040;
  const unsigned wanted = before_ | flush_to_zero | denormals_are_zero;
  if (wanted != before_) _mm_setcsr(wanted);
}
FlushToZero::~FlushToZero() {
  if (_mm_getcsr() != before_) _mm_setcsr(before_);
}

namespace detail {

void refuse_grain(std::int64_t grain) { fail("parallel_for", "grain {} is not positive", grain); }

void run_chunks(std::int64_t chunks, bool alone, void (*body)(const void*, std::int64_t),
                const void* context) {
  const int count = (alone || chunks < 2) ? 1 : threads();
  if (count == 1) {
    const FlushToZero flush;
    const Restore restore{&alone_here, alone_here};
    alone_here = true;
    for (std::int64_t i = 0; i < chunks; ++i) body(context, i);
    return;
  }
  parallel_loops.fetch_add(1, std::memory_order_relaxed);
  const FlushToZero flush;
  const Restore restore{&alone_here, alone_here};
  alone_here = true;
  SharedLoop loop(chunks, count, body, context);
  Team::of(count).run(loop, chunks);
  loop.rethrow();
}

}  // namespace detail

std::int64_t grain_for(Cost per_item) {
  const double price = std::max(per_item.nanoseconds(), 1e-3);
  return std::max<std::int64_t>(
      1, static_cast<std::int64_t>(std::ceil(parallel_threshold_nanoseconds / 2 / price)));
}

ParallelCounters parallel_counters() { return {detail::most_chunks_at_once.load(), parallel_loops.load()}; }
void reset_parallel_counters() {
  detail::most_chunks_at_once = 0;
  parallel_loops = 0;
}

}  // namespace headlab
