#include "framework/core/parallel.h"

#include <atomic>
#include <chrono>
#include <numeric>
#include <thread>

#include "framework/core/array.h"
#include "tests/support/errors.h"

namespace headlab {
namespace {

constexpr Cost dear{.flops = 1e9};

class Parallel : public testing::Test {
 protected:
  ~Parallel() override { set_threads(0); }
};

TEST_F(Parallel, MeetsEveryItemOnceInChunksOfTheGrain) {
  for (const int count : {1, 4}) {
    set_threads(count);
    for (const std::int64_t n : {0, 1, 2, 7, 101, 1009}) {
      for (const std::int64_t grain : {std::int64_t{1}, std::int64_t{3}, std::int64_t{64}, INT64_MAX}) {
        std::vector<std::atomic<int>> met(static_cast<std::size_t>(n));
        std::atomic<int> wrong{0};
        parallel_for(n, grain, dear, [&](std::int64_t begin, std::int64_t end) {
          if (begin % grain != 0 || end > n || end <= begin) ++wrong;
          if (end - begin != grain && end != n) ++wrong;
          for (std::int64_t i = begin; i < end; ++i) ++met[static_cast<std::size_t>(i)];
        });
        EXPECT_EQ(wrong, 0);
        for (const auto& times : met) EXPECT_EQ(times, 1) << n << " by " << grain;
      }
    }
  }
}

TEST_F(Parallel, ANegativeCountIsNoWorkAndAGrainIsPositive) {
  parallel_for(-3, 1, dear, [](std::int64_t, std::int64_t) { FAIL(); });
  EXPECT_EQ(error_of([] { parallel_for(3, 0, dear, [](std::int64_t, std::int64_t) {}); }),
            "parallel_for: grain 0 is not positive");
}

TEST_F(Parallel, SmallWorkStaysOnTheCallersThread) {
  set_threads(8);
  reset_parallel_counters();
  const std::thread::id caller = std::this_thread::get_id();
  int chunks = 0;  // not atomic: only the caller may touch it
  parallel_for(1000, 10, {.flops = 1}, [&](std::int64_t, std::int64_t) {
    EXPECT_EQ(std::this_thread::get_id(), caller);
    ++chunks;
  });
  EXPECT_EQ(chunks, 100);
  parallel_for(1, 1, dear,
               [&](std::int64_t, std::int64_t) { EXPECT_EQ(std::this_thread::get_id(), caller); });
  EXPECT_EQ(parallel_counters().parallel_loops, 0);
  parallel_for(2, 1, dear, [](std::int64_t, std::int64_t) {});
  EXPECT_EQ(parallel_counters().parallel_loops, 1);
}

TEST_F(Parallel, GrainsComeFromThePriceAlone) {
  const std::int64_t one = grain_for({.flops = 16});  // a nanosecond
  EXPECT_EQ(one, 5'000);
  EXPECT_EQ(grain_for({.flops = 16e9}), 1);
  EXPECT_GE(grain_for({}), 1);
  set_threads(8);
  EXPECT_EQ(grain_for({.flops = 16}), one);
}

// Sums whose order of addition shows in the bits, an outer piece a row, and inside it a loop over columns of
// its own, with scratch of its own. Pieces that sleep are sure to overlap.
std::vector<float> nested_sums(bool sleep = false) {
  constexpr std::int64_t pieces = 32;
  std::vector<float> sums(pieces);
  parallel_for(pieces, 1, dear, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t piece = begin; piece < end; ++piece) {
      const std::int64_t n = 1 + piece * 370 % 2111;  // uneven
      constexpr std::int64_t grain = 16;
      if (sleep) std::this_thread::sleep_for(std::chrono::microseconds(30));
      Array partial({(n + grain - 1) / grain});
      parallel_for(n, grain, dear, [&](std::int64_t from, std::int64_t to) {
        float sum = 0;
        for (std::int64_t i = from; i < to; ++i) sum += 1.0F / static_cast<float>(1 + i * 7 + piece);
        partial.data<float>()[from / grain] = sum;
      });
      const auto values = std::as_const(partial).values<float>();
      sums[static_cast<std::size_t>(piece)] = std::accumulate(values.begin(), values.end(), 0.0F);
    }
  });
  return sums;
}

TEST_F(Parallel, NestedLoopsGiveTheSameBitsForAnyNumberOfThreads) {
  set_threads(1);
  const std::vector<float> want = nested_sums();
  for (const int count : {4, 8}) {
    set_threads(count);
    reset_parallel_counters();
    for (int repeat = 0; repeat < 1000; ++repeat) {
      const std::vector<float> got = nested_sums(repeat % 10 == 0);
      ASSERT_EQ(got, want) << count << " threads, repeat " << repeat;
    }
    EXPECT_GT(parallel_counters().most_at_once, 1);
  }
}

TEST_F(Parallel, ALoopInsideAChunkStaysOnItsThread) {
  set_threads(4);
  std::atomic<int> strangers{0};
  std::atomic<int> wide{0};
  parallel_for(64, 1, dear, [&](std::int64_t, std::int64_t) {
    const std::thread::id mine = std::this_thread::get_id();
    if (threads() != 1) ++wide;
    parallel_for(16, 1, dear, [&](std::int64_t, std::int64_t) {
      if (std::this_thread::get_id() != mine) ++strangers;
    });
  });
  EXPECT_EQ(strangers, 0);
  EXPECT_EQ(wide, 0);
  EXPECT_EQ(threads(), 4);
}

TEST_F(Parallel, TwoThreadsOfOneProcessDoNotDisturbEachOther) {
  set_threads(1);
  const std::vector<float> want = nested_sums();
  set_threads(4);
  std::atomic<int> wrong{0};
  const auto train = [&](bool alone) {
    for (int repeat = 0; repeat < 200; ++repeat) {
      if (alone) {
        const OneThread one;
        wrong += nested_sums() != want;
      } else {
        wrong += nested_sums() != want;
      }
    }
  };
  std::thread first(train, false);
  std::thread second(train, false);
  std::thread third(train, true);
  first.join();
  second.join();
  third.join();
  EXPECT_EQ(wrong, 0);
}

TEST_F(Parallel, MoreCallersThanOffersAllFinish) {
  set_threads(4);
  std::atomic<std::int64_t> sum{0};
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 12; ++caller) {
    callers.emplace_back([&] {
      for (int repeat = 0; repeat < 100; ++repeat) {
        parallel_for(7, 1, dear, [&](std::int64_t begin, std::int64_t) { sum += begin; });
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(sum, 12 * 100 * 21);
}

TEST_F(Parallel, ALoopAfterALongPauseIsHelpedAgain) {
  set_threads(2);
  for (int pause = 0; pause < 3; ++pause) {
    // Helpers have gone to sleep by now.
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    reset_parallel_counters();
    for (int repeat = 0; parallel_counters().most_at_once < 2 && repeat < 2000; ++repeat) {
      parallel_for(8, 1, dear, [](std::int64_t, std::int64_t) {
        std::this_thread::sleep_for(std::chrono::microseconds(200));
      });
    }
    EXPECT_EQ(parallel_counters().most_at_once, 2);
  }
}

TEST_F(Parallel, AnExceptionReachesTheCallerOnceAndTheNextCallWorks) {
  for (const int count : {1, 4, 8}) {
    set_threads(count);
    for (int repeat = 0; repeat < 50; ++repeat) {
      int caught = 0;
      try {
        parallel_for(32, 1, dear, [&](std::int64_t begin, std::int64_t) {
          if (begin % 5 == repeat % 5) fail("piece", "{}", begin % 5);
        });
      } catch (const Error& error) {
        EXPECT_EQ(std::string(error.what()), fmt::format("piece: {}", repeat % 5));
        ++caught;
      }
      EXPECT_EQ(caught, 1);
      EXPECT_EQ(threads(), count);
      std::atomic<int> met{0};
      parallel_for(32, 1, dear, [&](std::int64_t, std::int64_t) { ++met; });
      EXPECT_EQ(met, 32);
    }
  }
}

TEST_F(Parallel, AnExceptionOfAnInnerLoopReachesTheCallerToo) {
  set_threads(4);
  EXPECT_EQ(error_of([] {
              parallel_for(32, 1, dear, [](std::int64_t, std::int64_t) {
                parallel_for(8, 1, dear, [](std::int64_t, std::int64_t) { fail("inner", "wrong"); });
              });
            }),
            "inner: wrong");
  EXPECT_EQ(threads(), 4);
}

}  // namespace
}  // namespace headlab
