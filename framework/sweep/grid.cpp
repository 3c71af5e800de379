#include "framework/sweep/grid.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>

#include "framework/core/parallel.h"
#include "framework/files/lock.h"
#include "framework/files/run_folder.h"

namespace headlab {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds glance{50};     // between looks at the stop flag
constexpr std::chrono::milliseconds again_in{200};  // until a run locked by another process is tried again

enum class State : std::uint8_t { waiting, elsewhere, running, done };

struct Slot {
  State state = State::waiting;
  Clock::time_point not_before{};
  std::atomic<std::int64_t> step = 0;
  std::optional<RunRecord> record;
  std::exception_ptr error;
};

/// Shared by the workers and the thread that waits for them; `mutex_` guards everything but the steps.
class Grid {
 public:
  Grid(std::span<const PlannedRun> runs, const RunWork& work, const GridOptions& options)
      : runs_(runs), work_(work), options_(options), slots_(runs.size()) {}

  void run(int workers) {
    std::vector<std::thread> threads;
    running_workers_ = workers;
    try {
      for (int i = 0; i < workers; ++i) threads.emplace_back([this] { work(); });
    } catch (...) {
      const std::lock_guard guard(mutex_);
      halt_ = true;
      running_workers_ -= workers - static_cast<int>(threads.size());
      slots_[0].error = std::current_exception();
    }
    watch();
    for (std::thread& thread : threads) thread.join();
  }

  GridResult result() {
    GridResult result;
    for (Slot& slot : slots_) {
      if (slot.error) std::rethrow_exception(slot.error);
    }
    for (Slot& slot : slots_) {
      if (!slot.record) result.interrupted = true;
      result.records.push_back(std::move(slot.record));
    }
    result.made = made_;
    return result;
  }

 private:
  void watch() {
    std::unique_lock lock(mutex_);
    while (running_workers_ > 0) {
      changed_.wait_for(lock, glance);
      if (options_.stop && *options_.stop) halt_ = true;
      tell(lock);
    }
    tell(lock);
  }

  void tell(std::unique_lock<std::mutex>& lock) {
    if (!options_.progress) return;
    const SweepProgress progress = now();
    lock.unlock();
    std::exception_ptr error;
    try {
      options_.progress(progress);
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();
    if (!error) return;
    halt_ = true;
    slots_[0].error = error;
  }

  SweepProgress now() const {
    SweepProgress progress;
    progress.total = std::ssize(runs_);
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      const Slot& slot = slots_[i];
      if (slot.state == State::done) ++progress.done;
      if (slot.state == State::elsewhere) ++progress.elsewhere;
      if (slot.state == State::running) {
        progress.running.push_back({runs_[i].name, slot.step, runs_[i].config.recipe.steps});
      }
    }
    return progress;
  }

  void work() {
    const OneThread one_thread;
    while (const std::optional<std::size_t> index = next()) {
      Slot& slot = slots_[*index];
      State state = State::waiting;
      try {
        state = attempt(*index);
      } catch (...) {
        halt_ = true;
        const std::lock_guard guard(mutex_);
        slot.error = std::current_exception();
      }
      const std::lock_guard guard(mutex_);
      slot.state = state;
      slot.not_before = Clock::now() + again_in;
      changed_.notify_all();
    }
    const std::lock_guard guard(mutex_);
    --running_workers_;
    changed_.notify_all();
  }

  /// The first run that nobody does, marked as running; waits while all that are left are done elsewhere.
  std::optional<std::size_t> next() {
    std::unique_lock lock(mutex_);
    while (!halt_) {
      bool left = false;
      for (std::size_t i = 0; i < slots_.size(); ++i) {
        Slot& slot = slots_[i];
        if (slot.state != State::waiting && slot.state != State::elsewhere) continue;
        left = true;
        if (slot.state == State::elsewhere && Clock::now() < slot.not_before) continue;
        slot.state = State::running;
        return i;
      }
      if (!left) return std::nullopt;
      changed_.wait_for(lock, glance);
    }
    return std::nullopt;
  }

  State attempt(std::size_t index) {
    const PlannedRun& run = runs_[index];
    Slot& slot = slots_[index];
    const std::filesystem::path folder = options_.folder / run.name;
    slot.record = find_record(folder, run.key);
    if (slot.record) return State::done;
    make_folder(folder);
    const std::optional<FolderLock> lock = FolderLock::try_lock(folder);
    if (!lock) return State::elsewhere;
    // Another process may have finished it between the look and the lock.
    slot.record = find_record(folder, run.key);
    if (slot.record) return State::done;
    std::optional<RunRecord> record = work_(run, {folder, &halt_, &slot.step});
    if (!record) return State::waiting;
    store_record(folder, run.key, *record);
    slot.record = std::move(record);
    ++made_;
    return State::done;
  }

  std::span<const PlannedRun> runs_;
  const RunWork& work_;
  const GridOptions& options_;
  std::vector<Slot> slots_;
  std::mutex mutex_;
  std::condition_variable changed_;
  int running_workers_ = 0;
  std::atomic<bool> halt_ = false;
  std::atomic<std::int64_t> made_ = 0;
};

}  // namespace

GridResult run_grid(std::span<const PlannedRun> runs, const RunWork& work, const GridOptions& options) {
  check(options.workers >= 0 && options.workers <= max_threads, "run_grid", "{} workers; 0 to {} are allowed",
        options.workers, max_threads);
  make_folder(options.folder);
  if (runs.empty()) return {};
  const std::int64_t wanted = options.workers == 0 ? threads() : options.workers;
  Grid grid(runs, work, options);
  grid.run(static_cast<int>(std::min<std::int64_t>(wanted, std::ssize(runs))));
  return grid.result();
}

}  // namespace headlab
