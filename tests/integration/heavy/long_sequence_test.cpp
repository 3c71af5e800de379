// Attention over sequences whose weights would not fit: a matrix of 16 384 × 16 384 takes 1 GiB a head.
#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "framework/autograd/backward.h"
#include "framework/core/parallel.h"
#include "framework/core/pool.h"
#include "framework/core/random.h"
#include "framework/ops/attention.h"

namespace headlab {
namespace {

Tensor some(Random& random, const Shape& shape, bool grad) {
  Array x(shape);
  for (float& value : x.values<float>()) value = static_cast<float>(random.normal());
  return Tensor(x, grad);
}

struct Long {
  std::int64_t tokens = 0, heads = 1, d = 64;
  Mask mask = {};
};

// The most bytes alive beside q, k, v, their gradients and the gradient that comes in.
std::int64_t extra_bytes(const Long& l, bool with_backward) {
  Random random(3, Stream::statistics);
  const Shape shape{1, l.tokens, l.heads * l.d};
  const Tensor q = some(random, shape, with_backward), k = some(random, shape, with_backward),
               v = some(random, shape, with_backward);
  const Array seed = some(random, shape, false).value();
  const std::int64_t gradients = with_backward ? 3 * seed.bytes() : 0;
  const std::int64_t before = pool::counters().live_bytes;
  pool::reset_peak();
  const AttentionResult r = attention(q, k, v, {.heads = l.heads, .mask = l.mask});
  if (with_backward) backward(r.out, {.seed = seed});
  const Array& out = r.out.value();
  for (std::int64_t i = 0; i < out.size(); i += 997) EXPECT_TRUE(std::isfinite(out.at(i)));
  return pool::counters().peak_bytes - before - gradients;
}

constexpr std::int64_t million = 1'000'000;

TEST(LongSequences, MemoryGrowsWithTheTokensNotWithTheirSquare) {
  const std::int64_t half = extra_bytes({.tokens = 2048, .heads = 2, .mask = Mask::causal()}, true);
  const std::int64_t whole = extra_bytes({.tokens = 4096, .heads = 2, .mask = Mask::causal()}, true);
  EXPECT_LT(whole, 2.2 * static_cast<double>(half));
  EXPECT_LT(whole, 40 * million);  // the weights alone would take 134
}

// The result takes 34; every thread has a head's keys, values and their gradients side by side, which take
// 17, and there are eight heads.
TEST(LongSequences, SlowBothWaysOverSixteenThousandTokens) {
  const std::int64_t at_once = std::min(threads(), 8);
  EXPECT_LT(extra_bytes({.tokens = 16'384, .heads = 8}, true), (36 + 17 * at_once) * million);
}

TEST(LongSequences, SlowForwardOverSixtyFiveThousandTokens) {
  EXPECT_LT(extra_bytes({.tokens = 65'536}, false), 25 * million);
  EXPECT_LT(extra_bytes({.tokens = 65'536, .mask = Mask::window(256)}, false), 25 * million);
}

}  // namespace
}  // namespace headlab
