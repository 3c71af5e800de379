#include "framework/sweep/grid.h"

#include <chrono>
#include <csignal>
#include <mutex>
#include <thread>
#include <utility>

#include <gtest/gtest.h>

#include "framework/core/parallel.h"
#include "framework/files/lock.h"
#include "framework/files/run_folder.h"
#include "tests/support/child.h"
#include "tests/support/errors.h"
#include "tests/support/temporary_folder.h"
#include "tests/sweep/grid_runs.h"

namespace headlab {
namespace {

using namespace std::chrono_literals;

TEST(Grid, GivesTheSameRecordsForAnyNumberOfWorkers) {
  const std::vector<PlannedRun> runs = planned();
  for (const int workers : {0, 1, 2, 3, 7}) {
    const TemporaryFolder folder;
    const GridResult result = quick(runs, folder.path(), workers);
    EXPECT_EQ(texts(result), undisturbed(runs));
    EXPECT_EQ(result.made, 5);
    EXPECT_FALSE(result.interrupted);
  }
}

TEST(Grid, RunsSideBySideEachOnOneThread) {
  const TemporaryFolder folder;
  const std::vector<PlannedRun> runs = planned(2);
  std::mutex mutex;
  std::vector<int> seen;
  std::atomic<int> inside = 0;
  run_grid(runs,
           [&](const PlannedRun& run, const RunPlace&) {
             ++inside;
             while (inside < 2) std::this_thread::sleep_for(1ms);  // hangs unless both run at once
             const std::lock_guard guard(mutex);
             seen.push_back(threads());
             return std::optional(result_of(run));
           },
           {.folder = folder.path(), .workers = 2});
  EXPECT_EQ(seen, (std::vector<int>{1, 1}));
}

TEST(Grid, TakesRunsInTheOrderOfThePlan) {
  const TemporaryFolder folder;
  std::vector<std::uint64_t> order;
  run_grid(planned(),
           [&](const PlannedRun& run, const RunPlace&) {
             order.push_back(run.config.seed);
             return std::optional(result_of(run));
           },
           {.folder = folder.path(), .workers = 1});
  EXPECT_EQ(order, (std::vector<std::uint64_t>{0, 1, 2, 3, 4}));
}

TEST(Grid, DoesOnlyWhatIsMissing) {
  const TemporaryFolder folder;
  const std::vector<PlannedRun> runs = planned();
  store_record(RunFolder::create(folder / runs[3].name).path(), runs[3].key, result_of(runs[3]));
  EXPECT_EQ(quick(runs, folder.path()).made, 4);
  const GridResult again = quick(runs, folder.path(), 2);
  EXPECT_EQ(again.made, 0);
  EXPECT_EQ(texts(again), undisturbed(runs));
}

TEST(Grid, KeepsFailedRunsAndDoesNotRepeatThem) {
  const TemporaryFolder folder;
  const auto fail_second = [](const PlannedRun& run, const RunPlace&) {
    RunRecord record = result_of(run);
    if (run.config.seed == 1) record.failure = "train: the loss of step 2 is nan";
    return std::optional(record);
  };
  const GridResult result = run_grid(planned(3), fail_second, {.folder = folder.path()});
  EXPECT_TRUE(result.records[1]->failure);
  const GridResult again = quick(planned(3), folder.path());
  EXPECT_EQ(again.made, 0);
  EXPECT_EQ(texts(again), texts(result));
}

TEST(Grid, StopsWhenItIsTold) {
  const TemporaryFolder folder;
  const std::vector<PlannedRun> runs = planned();
  std::atomic<bool> stop = false;
  const auto until_stopped = [&](const PlannedRun& run, const RunPlace& place) -> std::optional<RunRecord> {
    if (run.config.seed < 2) return result_of(run);
    stop = true;
    while (!*place.stop) std::this_thread::sleep_for(1ms);
    return std::nullopt;
  };
  const GridResult result =
      run_grid(runs, until_stopped, {.folder = folder.path(), .workers = 1, .stop = &stop});
  EXPECT_TRUE(result.interrupted);
  EXPECT_EQ(result.made, 2);
  EXPECT_TRUE(result.records[1]);
  EXPECT_FALSE(result.records[2]);
  EXPECT_EQ(quick(runs, folder.path()).made, 3);
}

TEST(Grid, AnErrorEndsTheSweepAndKeepsWhatIsDone) {
  const TemporaryFolder folder;
  const std::vector<PlannedRun> runs = planned();
  const auto full_disk = [](const PlannedRun& run, const RunPlace& place) -> std::optional<RunRecord> {
    if (run.config.seed == 2) fail("disk", "no space left");
    if (run.config.seed < 2) return result_of(run);
    while (!*place.stop) std::this_thread::sleep_for(1ms);
    return std::nullopt;
  };
  EXPECT_EQ(error_of([&] { run_grid(runs, full_disk, {.folder = folder.path(), .workers = 2}); }),
            "disk: no space left");
  EXPECT_EQ(quick(runs, folder.path()).made, 3);
}

TEST(Grid, TellsProgressOnTheCallingThread) {
  const TemporaryFolder folder;
  const auto caller = std::this_thread::get_id();
  SweepProgress last;
  std::atomic<bool> stepped = false;
  run_grid(planned(3),
           [&stepped](const PlannedRun& run, const RunPlace& place) {
             *place.step = 4;
             while (!stepped) std::this_thread::sleep_for(1ms);
             return std::optional(result_of(run));
           },
           {.folder = folder.path(), .workers = 1, .progress = [&](const SweepProgress& progress) {
              EXPECT_EQ(std::this_thread::get_id(), caller);
              EXPECT_GE(progress.done, last.done);
              last = progress;
              if (progress.running.empty() || progress.running[0].step == 0) return;
              stepped = true;
              EXPECT_EQ(progress.running[0].step, 4);
              EXPECT_EQ(progress.running[0].steps, 5);
            }});
  EXPECT_TRUE(stepped);
  EXPECT_EQ(last.done, 3);
  EXPECT_EQ(last.total, 3);
  EXPECT_TRUE(last.running.empty());
}

TEST(Grid, RefusesNonsense) {
  const TemporaryFolder folder;
  EXPECT_EQ(error_of([&] { quick(planned(), folder.path(), -1); }),
            "run_grid: -1 workers; 0 to 256 are allowed");
  EXPECT_TRUE(quick({}, folder.path()).records.empty());
}

}  // namespace
}  // namespace headlab
