#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <thread>

#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include "framework/core/parallel.h"
#include "tests/support/errors.h"

namespace headlab {
namespace {

constexpr Cost dear{.flops = 1e9};

class ThreadLimit : public testing::Test {
 protected:
  ~ThreadLimit() override { set_threads(0); }
};

// The largest number of pieces of a loop that ran at the same moment.
int most_at_once(std::int64_t pieces) {
  std::atomic<int> now{0};
  std::atomic<int> most{0};
  reset_parallel_counters();
  parallel_for(pieces, 1, dear, [&](std::int64_t, std::int64_t) {
    const int running = ++now;
    int seen = most;
    while (running > seen && !most.compare_exchange_weak(seen, running)) {
    }
    std::this_thread::sleep_for(std::chrono::microseconds(300));
    --now;
  });
  if (threads() > 1) {
    // The loop counts a piece from a little before until a little after its body runs.
    EXPECT_GE(parallel_counters().most_at_once, most);
    EXPECT_LE(parallel_counters().most_at_once, threads());
  }
  return most;
}

TEST_F(ThreadLimit, NeverMorePiecesAtOnceThanAskedFor) {
  for (const int count : {1, 2, 3, 8, 2, 1}) {
    set_threads(count);
    EXPECT_EQ(threads(), count);
    int most = 0;
    // Pieces that sleep overlap on any machine, so the limit is not kept by accident; where others use the
    // machine, the second thread may come late.
    const int wanted = std::min(count, 2);
    for (int repeat = 0; repeat < 5 || (most < wanted && repeat < 500); ++repeat)
      most = std::max(most, most_at_once(64));
    EXPECT_LE(most, count);
    EXPECT_GE(most, wanted) << count;
  }
}

TEST_F(ThreadLimit, HoldsForTwoThreadsOfOneProcessTogether) {
  set_threads(3);
  std::atomic<int> now{0};
  std::atomic<int> most{0};
  const auto loop = [&] {
    for (int repeat = 0; repeat < 20; ++repeat) {
      parallel_for(32, 1, dear, [&](std::int64_t, std::int64_t) {
        const int running = ++now;
        int seen = most;
        while (running > seen && !most.compare_exchange_weak(seen, running)) {
        }
        std::this_thread::sleep_for(std::chrono::microseconds(100));
        --now;
      });
    }
  };
  std::thread first(loop);
  std::thread second(loop);
  first.join();
  second.join();
  EXPECT_LE(most, 3);
}

TEST_F(ThreadLimit, UpTo256MoreThanThereAreCpus) {
  set_threads(max_threads);
  EXPECT_EQ(threads(), 256);
  EXPECT_LE(most_at_once(600), 256);
  const std::string cpu_count = std::to_string(cpus());
  EXPECT_EQ(error_of([] { set_threads(257); }),
            "threads: 257 is not in 0 … 256 (0 means all " + cpu_count + " CPUs)");
  EXPECT_EQ(error_of([] { set_threads(-1); }),
            "threads: -1 is not in 0 … 256 (0 means all " + cpu_count + " CPUs)");
  EXPECT_EQ(threads(), 256);
}

TEST_F(ThreadLimit, TheDefaultIsTheUsableCpus) {
  set_threads(0);
  EXPECT_EQ(threads(), cpus());
  if (const char* expected = std::getenv("HEADLAB_TEST_CPUS")) {
    EXPECT_EQ(cpus(), std::stoi(expected));
  }
}

TEST_F(ThreadLimit, OneThreadHoldsForItsScopeAndThread) {
  set_threads(4);
  {
    const OneThread outer;
    EXPECT_EQ(threads(), 1);
    {
      const OneThread inner;
      EXPECT_EQ(most_at_once(16), 1);
    }
    EXPECT_EQ(threads(), 1);
    std::thread([] { EXPECT_EQ(threads(), 4); }).join();
  }
  EXPECT_EQ(threads(), 4);
}

// The same tests in a process that may use one core only; its threads must be made after the mask is set.
TEST_F(ThreadLimit, HoldsUnderAffinityToOneCore) {
  if (std::getenv("HEADLAB_TEST_CPUS")) return;
  cpu_set_t mask;
  ASSERT_EQ(::sched_getaffinity(0, sizeof mask, &mask), 0);
  int core = 0;
  while (!CPU_ISSET(core, &mask)) ++core;
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    CPU_ZERO(&mask);
    CPU_SET(core, &mask);
    if (::sched_setaffinity(0, sizeof mask, &mask) != 0) ::_exit(98);
    ::setenv("HEADLAB_TEST_CPUS", "1", 1);
    ::execl("/proc/self/exe", "test", "--gtest_filter=ThreadLimit.*:Parallel.*", "--gtest_brief=1", nullptr);
    ::_exit(99);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace headlab
