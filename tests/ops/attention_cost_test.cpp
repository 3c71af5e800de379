// What masks cost: operations of the streaming kernel's products, as kernels count them.
#include "framework/core/profile.h"
#include "framework/ops/attention.h"
#include "tests/support/attention.h"

namespace headlab {
namespace {

constexpr std::int64_t tokens = 1024;

struct Operations {
  double forward = 0, backward = 0;
};

Operations operations_of(const Mask& mask) {
  Random random(1, Stream::statistics);
  const AttentionSizes s{
      .batch = 2, .heads = 2, .kv_heads = 1, .n_q = tokens, .n_k = tokens, .d_k = 16, .d_v = 16};
  const AttentionCase in(random, s, DType::f32);
  const AttentionOptions o{.heads = 2, .kv_heads = 1, .mask = mask};
  profile::Recording recording;
  Tensor out;
  {
    const profile::Scope step("step");
    out = attention(in.q, in.k, in.v, o).out;
    backward(out, {.seed = out.value()});
  }
  Operations sum;
  for (const profile::Line& line : recording.stop().lines) {
    (line.pass == profile::Pass::backward ? sum.backward : sum.forward) += line.flops;
  }
  return sum;
}

TEST(AttentionCost, IsTwoProductsForwardAndFiveBackward) {
  const Operations full = operations_of({});
  constexpr double product = 2.0 * 2 * 2 * tokens * tokens * 16;
  EXPECT_EQ(full.forward, 2 * product);
  EXPECT_EQ(full.backward, 5 * product);
}

TEST(AttentionCost, FollowsWhatTheMaskAllows) {
  const Operations full = operations_of({});
  const auto expect_share = [&](const char* name, const Mask& mask, double least, double most) {
    const Operations cost = operations_of(mask);
    EXPECT_GE(cost.forward, least * full.forward) << name;
    EXPECT_LE(cost.forward, most * full.forward) << name;
    EXPECT_GE(cost.backward, least * full.backward) << name;
    EXPECT_LE(cost.backward, most * full.backward) << name;
  };
  expect_share("causal", Mask::causal(), 0.5, 0.55);
  expect_share("upper left", Mask::causal_upper_left(), 0.5, 0.55);
  // A block of 64 queries sees 64 + 2·31 keys at most; 64 + 31 when it may not look ahead.
  expect_share("window", Mask::window(32), 0.05, 0.125);
  expect_share("window behind", Mask::window(32) & Mask::causal(), 0.025, 0.095);
  expect_share("prefix", Mask::prefix({0, tokens}), 0.75, 0.78);
  Array ids({1, tokens}, DType::i64), right({2, tokens}, DType::u8), left({2, tokens}, DType::u8);
  for (std::int64_t j = 0; j < tokens; ++j) {
    ids.data<std::int64_t>()[j] = j / 128;
    for (const std::int64_t b : {0, 1}) {
      right.data<std::uint8_t>()[b * tokens + j] = j < 256 ? 1 : 0;
      left.data<std::uint8_t>()[b * tokens + j] = j < 768 ? 0 : 1;
    }
  }
  expect_share("eight sequences in one", Mask::segments(ids), 0.125, 0.125);
  expect_share("key lengths", Mask::key_lengths({256, 512}), 0.375, 0.375);
  expect_share("padding behind", Mask::valid_keys(right), 0.25, 0.25);
  expect_share("padding before", Mask::valid_keys(left), 0.25, 0.25);
  expect_share("nothing but padding", Mask::key_lengths({0, 0}), 0, 0);
}

}  // namespace
}  // namespace headlab
