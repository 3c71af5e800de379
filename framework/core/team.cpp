#include "framework/core/team.h"

#include <algorithm>
#include <chrono>
#include <map>

#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/task_arena.h>

#include "framework/core/busy_wait.h"
#include "framework/core/parallel.h"
#include "framework/core/sanitizers.h"

#if HEADLAB_THREAD_SANITIZER
// Debian's TBB is not instrumented, so the way of a task from one thread to another is invisible to
// ThreadSanitizer: name its two ends. All else goes through atomics of our own.
extern "C" void __tsan_acquire(void*);
extern "C" void __tsan_release(void*);
#endif

namespace headlab::detail {

std::atomic<int> most_chunks_at_once{0};

namespace {

// How long a helper watches for the next loop. Longer than what a training step does between two loops,
// shorter than what anybody would notice.
constexpr std::chrono::microseconds patience{100};

std::atomic<int> running{0};

[[maybe_unused]] char hand_over = 0;
void task_leaves() {
#if HEADLAB_THREAD_SANITIZER
  __tsan_release(&hand_over);
#endif
}
void task_arrives() {
#if HEADLAB_THREAD_SANITIZER
  __tsan_acquire(&hand_over);
#endif
}

/// One of at most `limit` chunks that run in this process.
class Turn {
 public:
  explicit Turn(int limit) {
    BusyWait wait;
    int now = running.load(std::memory_order_relaxed);
    while (now >= limit || !running.compare_exchange_weak(now, now + 1, std::memory_order_relaxed)) {
      if (now < limit) continue;
      wait.once();
      now = running.load(std::memory_order_relaxed);
    }
    int most = most_chunks_at_once.load(std::memory_order_relaxed);
    while (now + 1 > most &&
           !most_chunks_at_once.compare_exchange_weak(most, now + 1, std::memory_order_relaxed)) {
    }
  }
  ~Turn() { running.fetch_sub(1, std::memory_order_relaxed); }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;
};

}  // namespace

SharedLoop::SharedLoop(std::int64_t chunks, int threads, Body body, const void* context)
    : body_(body),
      context_(context),
      ranges_(static_cast<int>(std::min<std::int64_t>({chunks, threads, most_ranges}))) {
  for (int i = 0; i < ranges_; ++i) {
    // Without the product chunks · i, which may overflow.
    const std::int64_t size = chunks / ranges_, more = chunks % ranges_;
    const std::int64_t begin = size * i + std::min<std::int64_t>(i, more);
    range_[static_cast<std::size_t>(i)].next.store(begin, std::memory_order_relaxed);
    range_[static_cast<std::size_t>(i)].end = begin + size + (i < more ? 1 : 0);
  }
}

bool SharedLoop::take(int range, std::int64_t& chunk) {
  Range& r = range_[static_cast<std::size_t>(range)];
  if (r.next.load(std::memory_order_relaxed) >= r.end) return false;
  chunk = r.next.fetch_add(1, std::memory_order_relaxed);
  return chunk < r.end;
}

void SharedLoop::work(int thread, int limit) {
  for (int i = 0; i < ranges_; ++i) {
    std::int64_t chunk = 0;
    while (!failed_.load(std::memory_order_relaxed) && take((thread + i) % ranges_, chunk)) {
      const Turn turn(limit);
      try {
        body_(context_, chunk);
      } catch (...) {
        const std::lock_guard lock(mutex_);
        if (!failure_) failure_ = std::current_exception();
        failed_.store(true, std::memory_order_relaxed);
      }
    }
  }
}

void SharedLoop::rethrow() {
  if (failure_) std::rethrow_exception(failure_);
}

struct Team::Workers {
  explicit Workers(int count) : arena(count, 0) {}
  // More than there are processors are allowed, where somebody asks for them.
  oneapi::tbb::global_control limit{oneapi::tbb::global_control::max_allowed_parallelism,
                                    static_cast<std::size_t>(max_threads)};
  oneapi::tbb::task_arena arena;
};

Team::Team(int threads)
    : threads_(threads), waits_(threads <= cpus()), workers_(std::make_unique<Workers>(threads - 1)) {
  workers_->arena.initialize();
}

Team& Team::of(int threads) {
  // Never destroyed: a loop may be started while the process ends. The last one is found without the lock.
  static std::mutex mutex;
  static auto* teams = new std::map<int, std::unique_ptr<Team>>;
  static std::atomic<Team*> last{nullptr};
  if (Team* team = last.load(std::memory_order_acquire); team != nullptr && team->threads_ == threads)
    return *team;
  const std::lock_guard lock(mutex);
  auto& team = (*teams)[threads];
  if (!team) team.reset(new Team(threads));
  last.store(team.get(), std::memory_order_release);
  return *team;
}

void Team::call_helpers(int wanted) {
  int now = helpers_.load();
  while (now < wanted) {
    if (!helpers_.compare_exchange_weak(now, now + 1)) continue;
    task_leaves();
    workers_->arena.enqueue([this] {
      task_arrives();
      help();
    });
    ++now;
  }
}

bool Team::anything_open() const {
  return std::any_of(offers_.begin(), offers_.end(), [](const Offer& offer) { return offer.open.load(); });
}

bool Team::help_somebody(int thread) {
  bool helped = false;
  for (Offer& offer : offers_) {
    if (!offer.open.load(std::memory_order_relaxed)) continue;
    offer.inside.fetch_add(1);
    if (SharedLoop* loop = offer.loop.load(); loop != nullptr && offer.open.load()) {
      loop->work(thread, threads_);
      offer.open.store(false);
      helped = true;
    }
    offer.inside.fetch_sub(1);
  }
  return helped;
}

void Team::help() {
  using Clock = std::chrono::steady_clock;
  const FlushToZero flush;
  const OneThread nested_loops_stay_here;
  const int thread = 1 + static_cast<int>(numbers_.fetch_add(1) % static_cast<unsigned>(threads_ - 1));
  Clock::time_point idle_since = Clock::now();
  for (unsigned looks = 1;; ++looks) {
    if (help_somebody(thread)) {
      idle_since = Clock::now();
    } else if (!waits_ || (looks % 32 == 0 && Clock::now() - idle_since > patience)) {
      helpers_.fetch_sub(1);
      // Somebody may have offered a loop after the last look and still have counted on this helper.
      if (!anything_open()) return;
      if (helpers_.fetch_add(1) >= threads_ - 1) {
        helpers_.fetch_sub(1);
        return;
      }
      idle_since = Clock::now();
    } else {
      BusyWait::pause();
    }
  }
}

void Team::run(SharedLoop& loop, std::int64_t chunks) {
  const auto free =
      std::find_if(offers_.begin(), offers_.end(), [](Offer& offer) { return !offer.taken.exchange(true); });
  const bool offered = free != offers_.end();  // else: more callers than offers, and each works alone
  if (offered) {
    free->loop.store(&loop);
    free->open.store(true);
    call_helpers(static_cast<int>(std::min<std::int64_t>(threads_ - 1, chunks - 1)));
  }
  loop.work(0, threads_);
  if (!offered) return;
  free->open.store(false);
  free->loop.store(nullptr);
  BusyWait wait;
  while (free->inside.load() != 0) wait.once();
  free->taken.store(false);
}

}  // namespace headlab::detail
