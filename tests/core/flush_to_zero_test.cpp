#include <atomic>
#include <cstring>

#include "framework/core/array.h"
#include "framework/core/parallel.h"
#include "framework/core/random.h"
#include "tests/support/errors.h"

namespace headlab {
namespace {

constexpr Cost dear{.flops = 1e9};

// Whether this thread takes subnormal inputs for zero, and makes zero of subnormal results.
bool flushes_inputs() {
  volatile float tiny = 1e-42F;
  return tiny * 1e10F == 0;
}
bool flushes_results() {
  volatile float small = 1e-30F;
  return small * 1e-10F == 0;
}
bool flushes() { return flushes_inputs() && flushes_results(); }
bool keeps() { return !flushes_inputs() && !flushes_results(); }

class Subnormals : public testing::Test {
 protected:
  ~Subnormals() override { set_threads(0); }
};

TEST_F(Subnormals, AreZeroInsideEveryChunkAndNotOutside) {
  EXPECT_TRUE(keeps());
  for (const int count : {1, 2, 8}) {
    set_threads(count);
    for (const Cost cost : {Cost{}, dear}) {
      std::atomic<int> wrong{0};
      parallel_for(64, 1, cost, [&](std::int64_t, std::int64_t) {
        if (!flushes()) ++wrong;
        parallel_for(4, 1, cost, [&](std::int64_t, std::int64_t) {
          if (!flushes()) ++wrong;
        });
        if (!flushes()) ++wrong;
      });
      EXPECT_EQ(wrong, 0) << count << " threads";
      EXPECT_TRUE(keeps()) << count << " threads";
    }
  }
}

TEST_F(Subnormals, TheModeComesBackAfterAnException) {
  for (const int count : {1, 4}) {
    set_threads(count);
    error_of([] { parallel_for(8, 1, dear, [](std::int64_t, std::int64_t) { fail("piece", "wrong"); }); });
    EXPECT_TRUE(keeps());
  }
}

TEST_F(Subnormals, TheModeOfAScopeEndsWithIt) {
  {
    const FlushToZero outer;
    EXPECT_TRUE(flushes());
    { const FlushToZero inner; }
    EXPECT_TRUE(flushes());
  }
  EXPECT_TRUE(keeps());
}

TEST_F(Subnormals, GiveTheSameBitsForAnyNumberOfThreads) {
  constexpr std::int64_t n = 10'007;
  Array input({n});
  Random random(1, Stream::evaluation);
  for (float& x : input.values<float>()) x = static_cast<float>(random.normal() * 1e-42);
  const auto run = [&](int count) {
    set_threads(count);
    Array output({n});
    parallel_for(n, 101, dear, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        const float x = std::as_const(input).data<float>()[i];
        output.data<float>()[i] = x * 1e3F + 1e-38F * (1 + x * 1e30F) * 0.3F;
      }
    });
    return output;
  };
  const Array want = run(1);
  for (const int count : {2, 4, 8}) {
    const Array got = run(count);
    EXPECT_EQ(std::memcmp(got.raw(), want.raw(), static_cast<std::size_t>(want.bytes())), 0) << count;
  }
}

}  // namespace
}  // namespace headlab
