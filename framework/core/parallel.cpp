#include "framework/core/parallel.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <mutex>

#include <immintrin.h>
#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/task_arena.h>
#include <sched.h>

#include "framework/core/check.h"

#if defined(__SANITIZE_THREAD__)
#define HEADLAB_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define HEADLAB_TSAN 1
#endif
#endif
#ifdef HEADLAB_TSAN
// Debian's TBB is not instrumented, so its hand-over of work is invisible to ThreadSanitizer: name fork and
// join here.
extern "C" void __tsan_acquire(void*);
extern "C" void __tsan_release(void*);
#endif

namespace headlab {
namespace {

// Whether loops started by this thread stay on it: inside OneThread, or inside a chunk.
thread_local bool alone_here = false;

struct Arena {
  explicit Arena(int count)
      : threads(count),
        limit(oneapi::tbb::global_control::max_allowed_parallelism, static_cast<std::size_t>(count)),
        arena(count) {}
  int threads;
  oneapi::tbb::global_control limit;
  oneapi::tbb::task_arena arena;
};

std::mutex arena_mutex;
std::shared_ptr<Arena>& arena_slot() {
  static auto* slot = new std::shared_ptr<Arena>;  // outlives every static that might start a loop
  return *slot;
}
std::atomic<int> chosen_threads{0};

std::shared_ptr<Arena> current_arena(int count) {
  const std::lock_guard lock(arena_mutex);
  auto& slot = arena_slot();
  if (!slot || slot->threads != count) slot = std::make_shared<Arena>(count);
  return slot;
}

std::atomic<int> running{0};
std::atomic<int> most_at_once{0};
std::atomic<std::int64_t> parallel_loops{0};

// What this thread wrote so far is seen by whoever comes after the same tag.
void comes_before([[maybe_unused]] void* tag) {
#ifdef HEADLAB_TSAN
  __tsan_release(tag);
#endif
}
void comes_after([[maybe_unused]] void* tag) {
#ifdef HEADLAB_TSAN
  __tsan_acquire(tag);
#endif
}
// One address for the start of all loops: a worker names it before it reads anything of its own loop.
char loop_start = 0;

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
  const std::shared_ptr<Arena> arena = current_arena(count);
  char loop_end = 0;
  comes_before(&loop_start);
  const auto piece = [&](std::int64_t chunk) {
    {
      const FlushToZero flush;
      const Restore restore{&alone_here, alone_here};
      alone_here = true;
      const int now = running.fetch_add(1, std::memory_order_relaxed) + 1;
      struct Leave {
        ~Leave() { running.fetch_sub(1, std::memory_order_relaxed); }
      } leave;
      int most = most_at_once.load(std::memory_order_relaxed);
      while (now > most && !most_at_once.compare_exchange_weak(most, now, std::memory_order_relaxed)) {
      }
      body(context, chunk);
    }
    comes_before(&loop_end);
  };
  arena->arena.execute([&] {
    comes_after(&loop_start);  // where all places in the arena are taken, another thread runs this
    // Isolated: while waiting here a thread must not pick up pieces of somebody else's loop.
    oneapi::tbb::this_task_arena::isolate([&] {
      oneapi::tbb::parallel_for(
          oneapi::tbb::blocked_range<std::int64_t>(0, chunks, 1),
          [&](const oneapi::tbb::blocked_range<std::int64_t>& range) {
            comes_after(&loop_start);
            for (std::int64_t i = range.begin(); i != range.end(); ++i) piece(i);
          },
          oneapi::tbb::simple_partitioner());
    });
    comes_before(&loop_end);
  });
  comes_after(&loop_end);
}

}  // namespace detail

std::int64_t grain_for(Cost per_item) {
  const double price = std::max(per_item.nanoseconds(), 1e-3);
  return std::max<std::int64_t>(
      1, static_cast<std::int64_t>(std::ceil(parallel_threshold_nanoseconds / 2 / price)));
}

ParallelCounters parallel_counters() { return {most_at_once.load(), parallel_loops.load()}; }
void reset_parallel_counters() {
  most_at_once = 0;
  parallel_loops = 0;
}

}  // namespace headlab
