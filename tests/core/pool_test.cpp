#include "framework/core/pool.h"

#include <cstring>
#include <thread>

#include "framework/core/array.h"

namespace headlab {
namespace {

TEST(Pool, BlocksAreAlignedAndTheirs) {
  for (const std::int64_t bytes : {0, 1, 63, 64, 65, 127, 128, 129, 1000, 4097, 100'003}) {
    void* a = pool::allocate(bytes);
    void* b = pool::allocate(bytes);
    ASSERT_NE(a, nullptr);
    EXPECT_NE(a, b);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(a) % 64, 0U);
    std::memset(a, 1, static_cast<std::size_t>(bytes));
    std::memset(b, 2, static_cast<std::size_t>(bytes));
    if (bytes > 0) {
      EXPECT_EQ(static_cast<char*>(a)[bytes - 1], 1);
      EXPECT_EQ(static_cast<char*>(b)[0], 2);
    }
    pool::release(a);
    pool::release(b);
  }
  pool::release(nullptr);
}

TEST(Pool, ReusesABlockOfTheSameSize) {
  void* first = pool::allocate(5000);
  pool::release(first);
  const pool::Counters before = pool::counters();
  void* second = pool::allocate(5000);
  EXPECT_EQ(first, second);
  EXPECT_EQ(pool::counters().allocations, before.allocations + 1);
  EXPECT_EQ(pool::counters().from_system, before.from_system);
  EXPECT_LT(pool::counters().cached_bytes, before.cached_bytes);
  pool::release(second);
  EXPECT_EQ(pool::counters().cached_bytes, before.cached_bytes);
}

TEST(Pool, WastesAtMostAQuarter) {
  pool::trim();
  for (const std::int64_t bytes : {1'000, 1'025, 1'281, 70'001, 1'048'577}) {
    pool::release(pool::allocate(bytes));
    EXPECT_GE(pool::counters().cached_bytes, bytes);
    EXPECT_LE(pool::counters().cached_bytes, bytes + bytes / 4 + 64) << bytes;
    pool::trim();
  }
}

TEST(Pool, CountsWhatIsLive) {
  const pool::Counters before = pool::counters();
  pool::reset_peak();
  void* a = pool::allocate(1000);
  void* b = pool::allocate(300);
  EXPECT_EQ(pool::counters().live_blocks, before.live_blocks + 2);
  EXPECT_EQ(pool::counters().live_bytes, before.live_bytes + 1300);
  pool::release(a);
  EXPECT_EQ(pool::counters().live_bytes, before.live_bytes + 300);
  EXPECT_EQ(pool::counters().peak_bytes, before.live_bytes + 1300);
  pool::reset_peak();
  EXPECT_EQ(pool::counters().peak_bytes, before.live_bytes + 300);
  pool::release(b);
}

TEST(Pool, TrimGivesTheCacheBack) {
  pool::release(pool::allocate(100'003));
  EXPECT_GT(pool::counters().cached_bytes, 0);
  pool::trim();
  EXPECT_EQ(pool::counters().cached_bytes, 0);
}

TEST(Pool, TrimKeepsBlocksThatAreInUse) {
  pool::trim();
  void* small = pool::allocate(1000);
  void* large = pool::allocate(5'000'000);
  std::memset(small, 3, 1000);
  std::memset(large, 4, 5'000'000);
  pool::release(pool::allocate(1000));
  pool::release(pool::allocate(7'000'000));
  pool::trim();
  EXPECT_EQ(static_cast<char*>(small)[999], 3);
  EXPECT_EQ(static_cast<char*>(large)[4'999'999], 4);
  EXPECT_LE(pool::counters().cached_bytes, 2048);  // the small one beside a block in use
  pool::release(small);
  pool::release(large);
  pool::trim();
  EXPECT_EQ(pool::counters().cached_bytes, 0);
}

TEST(Pool, AFailedAllocationLeavesItUsable) {
  const pool::Counters before = pool::counters();
  for (const std::int64_t bytes :
       {std::int64_t{-1}, INT64_MIN, INT64_MAX, std::int64_t{1} << 62, std::int64_t{1} << 48}) {
    EXPECT_EQ(pool::allocate(bytes), nullptr) << bytes;
  }
  EXPECT_EQ(pool::counters().live_blocks, before.live_blocks);
  void* block = pool::allocate(1000);
  ASSERT_NE(block, nullptr);
  pool::release(block);
}

TEST(Pool, ThreadsMayReturnEachOthersBlocks) {
  const pool::Counters before = pool::counters();
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    std::vector<void*> blocks;
    for (int i = 0; i < 200; ++i) blocks.push_back(pool::allocate(i * 37));
    threads.emplace_back([blocks] {
      for (void* block : blocks) {
        pool::release(block);
        pool::release(pool::allocate(500));
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(pool::counters().live_blocks, before.live_blocks);
  EXPECT_EQ(pool::counters().live_bytes, before.live_bytes);
}

#ifdef HEADLAB_POISON
TEST(Pool, FreshNumbersAreNaNWhenPoisoned) {
  { Array::full({101}, 1); }
  const Array a({101});
  const Array b({51}, DType::f64);
  for (std::int64_t i = 0; i < 101; ++i) EXPECT_TRUE(std::isnan(a.at(i)));
  for (std::int64_t i = 0; i < 51; ++i) EXPECT_TRUE(std::isnan(b.at(i)));
}
#endif

}  // namespace
}  // namespace headlab
