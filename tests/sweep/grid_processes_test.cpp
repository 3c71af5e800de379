#include <chrono>
#include <csignal>
#include <mutex>
#include <thread>
#include <utility>

#include <gtest/gtest.h>

#include "framework/core/parallel.h"
#include "framework/files/lock.h"
#include "framework/files/run_folder.h"
#include "framework/sweep/grid.h"
#include "tests/support/child.h"
#include "tests/support/errors.h"
#include "tests/support/temporary_folder.h"
#include "tests/sweep/grid_runs.h"

namespace headlab {
namespace {

using namespace std::chrono_literals;

TEST(Grid, KilledAndStartedAgainEqualsUndisturbed) {
  const TemporaryFolder folder;
  const std::vector<PlannedRun> runs = planned();
  EXPECT_EQ(in_child([&] {
              run_grid(runs,
                       [](const PlannedRun& run, const RunPlace&) {
                         if (run.config.seed == 2) std::raise(SIGKILL);
                         return std::optional(result_of(run));
                       },
                       {.folder = folder.path(), .workers = 1});
              return std::string();
            }),
            "signal 9");
  const GridResult result = quick(runs, folder.path());
  EXPECT_EQ(result.made, 3);
  EXPECT_EQ(texts(result), undisturbed(runs));
}

TEST(Grid, TwoProcessesShareTheWork) {
  const TemporaryFolder folder;
  const std::vector<PlannedRun> runs = planned(12);
  int to_parent[2], to_child[2];
  ASSERT_EQ(::pipe(to_parent), 0);
  ASSERT_EQ(::pipe(to_child), 0);
  // Each process is in its first run before the other goes on. A run takes a while, so they do meet.
  const auto share = [&](int out, int in) {
    bool first = true;
    return run_grid(runs,
                    [&, first](const PlannedRun& run, const RunPlace&) mutable {
                      char byte = 0;
                      if (std::exchange(first, false)) {
                        check(::write(out, &byte, 1) == 1, "test", "cannot write");
                        if (in >= 0) check(::read(in, &byte, 1) == 1, "test", "cannot read");
                      }
                      std::this_thread::sleep_for(5ms);
                      return std::optional(result_of(run));
                    },
                    {.folder = folder.path(), .workers = 1})
        .made;
  };
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    try {
      const std::int64_t made = share(to_parent[1], to_child[0]);
      if (::write(to_parent[1], &made, sizeof made) == sizeof made) std::_Exit(0);
    } catch (const std::exception&) {
    }
    std::_Exit(1);
  }
  char byte = 0;
  ASSERT_EQ(::read(to_parent[0], &byte, 1), 1);
  const std::int64_t here = share(to_child[1], -1);
  std::int64_t there = 0;
  ASSERT_EQ(::read(to_parent[0], &there, sizeof there), static_cast<ssize_t>(sizeof there));
  for (const int end : {to_parent[0], to_parent[1], to_child[0], to_child[1]}) ::close(end);
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_GT(here, 0);
  EXPECT_GT(there, 0);
  EXPECT_EQ(here + there, 12);
  const GridResult result = quick(runs, folder.path());
  EXPECT_EQ(result.made, 0);
  EXPECT_EQ(texts(result), undisturbed(runs));
}

TEST(Grid, WaitsForARunThatSomebodyElseIsDoing) {
  const TemporaryFolder folder;
  const std::vector<PlannedRun> runs = planned(2);
  const std::filesystem::path first = folder / runs[0].name;
  make_folder(first);
  std::optional<FolderLock> lock(first);
  std::int64_t elsewhere = 0;
  const GridResult result =
      run_grid(runs, [](const PlannedRun& run, const RunPlace&) { return std::optional(result_of(run)); },
               {.folder = folder.path(), .progress = [&](const SweepProgress& progress) {
                  elsewhere = std::max(elsewhere, progress.elsewhere);
                  if (progress.done < 1 || progress.elsewhere < 1 || !lock) return;
                  store_record(first, runs[0].key, result_of(runs[0]));
                  lock.reset();
                }});
  EXPECT_EQ(elsewhere, 1);
  EXPECT_EQ(result.made, 1);
  EXPECT_EQ(texts(result), undisturbed(runs));
}

}  // namespace
}  // namespace headlab
