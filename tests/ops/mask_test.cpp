// Masks against the rule of each, key by key, and what joins with what.
#include "framework/ops/mask.h"

#include <functional>
#include <string>
#include <vector>

#include "tests/support/ops.h"

namespace headlab {
namespace {

using Ints = std::vector<std::int64_t>;

// The keys that every query of one example sees, as rows of 0 and 1: "110 111".
std::string seen(const Mask& mask, std::int64_t batch, std::int64_t example, std::int64_t n_q,
                 std::int64_t n_k) {
  const ResolvedMask resolved(mask, batch, 2, n_q, n_k, "test");
  std::string text;
  for (std::int64_t i = 0; i < n_q; ++i) {
    if (i > 0) text += ' ';
    std::int64_t count = 0;
    for (std::int64_t j = 0; j < n_k; ++j) {
      const bool allowed = resolved.row(example, 1, i).allows(j);
      text += allowed ? '1' : '0';
      count += allowed ? 1 : 0;
    }
    EXPECT_EQ(resolved.allowed_keys(example, 1, i), count);
  }
  return text;
}

Array ids(const Shape& shape, const Ints& list) {
  Array a(shape, DType::i64);
  std::copy(list.begin(), list.end(), a.data<std::int64_t>());
  return a;
}

Mask segments(const Ints& list) { return Mask::segments(ids({1, std::ssize(list)}, list)); }
Mask bytes(const Shape& shape) { return Mask::allow(Array::full(shape, 1, DType::u8)); }

TEST(Mask, PrefixIsSeenByAllQueriesAndTheRestIsCausal) {
  const Mask mask = Mask::prefix({2, 0, 4});
  EXPECT_EQ(seen(mask, 3, 0, 4, 4), "1100 1100 1110 1111");
  EXPECT_EQ(seen(mask, 3, 1, 4, 4), seen(Mask::causal(), 3, 1, 4, 4));
  EXPECT_EQ(seen(mask, 3, 2, 4, 4), "1111 1111 1111 1111");
  EXPECT_EQ(seen(Mask::prefix({2}), 1, 0, 2, 5), "11110 11111");
  EXPECT_EQ(seen(Mask::prefix({1}), 1, 0, 4, 2), "10 10 10 11");
}

TEST(Mask, SegmentsSeeThemselvesOnly) {
  const Mask mask = segments({0, 0, 3, 3, 7});
  EXPECT_EQ(seen(mask, 1, 0, 5, 5), "11000 11000 00110 00110 00001");
  EXPECT_EQ(seen(mask & Mask::causal(), 1, 0, 5, 5), "10000 11000 00100 00110 00001");
  EXPECT_EQ(seen(mask, 2, 1, 2, 5), "00110 00001");
  EXPECT_EQ(seen(mask, 1, 0, 7, 5), "00000 00000 11000 11000 00110 00110 00001");
  const Mask each = Mask::segments(ids({2, 3}, {5, 5, 6, -2, 1, 1}));
  EXPECT_EQ(seen(each, 2, 0, 3, 3), "110 110 001");
  EXPECT_EQ(seen(each, 2, 1, 3, 3), "100 011 011");
  EXPECT_EQ(seen(segments({}), 1, 0, 2, 0), " ");
}

TEST(Mask, WhatJoinsBlocksWhatEitherBlocks) {
  const Array valid = Array::of<std::uint8_t>({2, 5}, {0, 1, 1, 1, 1, 1, 1, 0, 1, 1});
  const std::vector<Mask> masks{Mask::causal(),
                                Mask::causal_upper_left(),
                                Mask::prefix({3, 1}),
                                segments({1, 1, 2, 2, 2}),
                                Mask::window(2),
                                Mask::key_lengths({4, 5}),
                                Mask::valid_keys(valid),
                                Mask::allow(Array::of<std::uint8_t>({2, 5}, {1, 0, 1, 1, 0, 1, 1, 1, 0, 1})),
                                Mask()};
  int joined = 0;
  for (std::size_t x = 0; x < masks.size(); ++x) {
    for (std::size_t y = 0; y < masks.size(); ++y) {
      if (x != y && x < 3 && y < 3) continue;
      if (std::min(x, y) == 2 && std::max(x, y) <= 3) continue;
      if (x == 3 && y == 3) continue;
      for (const std::int64_t b : {0, 1}) {
        std::string want = seen(masks[x], 2, b, 2, 5);
        const std::string other = seen(masks[y], 2, b, 2, 5);
        for (std::size_t i = 0; i < want.size(); ++i) want[i] = std::min(want[i], other[i]);
        EXPECT_EQ(seen(masks[x] & masks[y], 2, b, 2, 5), want) << x << " & " << y;
      }
      ++joined;
    }
  }
  EXPECT_EQ(joined, 81 - 6 - 3 - 1);
}

// What lies outside the range of a row is not even looked at.
TEST(Mask, MuchPaddingAtEitherEndIsOutsideTheRange) {
  const Array valid = Array::of<std::uint8_t>({3, 6}, {0, 0, 1, 0, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0});
  const ResolvedMask mask(Mask::causal() & Mask::valid_keys(valid), 3, 1, 6, 6, "test");
  const auto range = [&](std::int64_t example, std::int64_t query) {
    const ResolvedMask::Row row = mask.row(example, 0, query);
    return std::pair(row.first, row.last);
  };
  EXPECT_EQ(range(0, 3), (std::pair<std::int64_t, std::int64_t>(2, 4)));
  EXPECT_EQ(range(0, 1), (std::pair<std::int64_t, std::int64_t>(2, 2)));
  EXPECT_EQ(range(1, 5), (std::pair<std::int64_t, std::int64_t>(0, 4)));
  for (const std::int64_t query : {0, 5}) EXPECT_EQ(range(2, query).first, range(2, query).second);
}

TEST(Mask, ContradictionsNameBoth) {
  const auto text = [](const Mask& a, const Mask& b) {
    const std::string one = error_of([&] { a& b; });
    EXPECT_NE(error_of([&] { b& a; }), "");
    return one;
  };
  EXPECT_EQ(text(Mask::causal(), Mask::causal_upper_left()),
            "mask: causal and causal_upper_left do not join: they align queries with different keys");
  EXPECT_EQ(text(Mask::prefix({1}), Mask::causal()),
            "mask: prefix and causal do not join: prefix already is causal outside its prefix, which causal "
            "would block");
  EXPECT_EQ(text(Mask::prefix({1}), Mask::causal_upper_left()),
            "mask: prefix and causal_upper_left do not join: they align queries with different keys");
  EXPECT_EQ(text(Mask::prefix({1}), Mask::prefix({2})),
            "mask: prefix and prefix do not join: an example has one prefix");
  EXPECT_EQ(text(segments({1}), segments({2})),
            "mask: segments and segments do not join: a key is in one segment");
  EXPECT_EQ(text(segments({1}), Mask::prefix({1})),
            "mask: segments and prefix do not join: a prefix is of one sequence, segments are of several");
  EXPECT_EQ(text(Mask::window(3) & Mask::causal(), Mask::key_lengths({2}) & Mask::causal_upper_left()),
            "mask: causal and causal_upper_left do not join: they align queries with different keys");
}

TEST(Mask, DifferentBatchesOrKeysNameBoth) {
  const auto text = [](const Mask& a, const Mask& b) { return error_of([&] { a& b; }); };
  const Mask valid = Mask::valid_keys(Array::full({3, 5}, 1, DType::u8));
  const Mask two = Mask::segments(ids({2, 5}, Ints(10, 1)));
  EXPECT_EQ(text(Mask::key_lengths({1, 2}), Mask::key_lengths({1})),
            "mask: key_lengths for 2 and key_lengths for 1 examples do not join");
  EXPECT_EQ(text(valid, two), "mask: valid_keys for 3 and segments for 2 examples do not join");
  EXPECT_EQ(text(two, bytes({3, 1, 2, 5})), "mask: segments for 2 and allow for 3 examples do not join");
  EXPECT_EQ(text(valid, Mask::prefix({1})), "mask: valid_keys for 3 and prefix for 1 examples do not join");
  EXPECT_EQ(text(valid, segments({1, 2})), "mask: valid_keys for 5 and segments for 2 keys do not join");
  EXPECT_EQ(text(Mask::bias(Tensor::zeros({2, 4})), bytes({2, 5})),
            "mask: bias for 4 and allow for 5 keys do not join");
}

TEST(Mask, SizesThatDoNotFitACallAreNamed) {
  const auto text = [](const Mask& mask) {
    return error_of([&] { ResolvedMask(mask, 2, 3, 4, 5, "attention"); });
  };
  EXPECT_EQ(text(Mask::prefix({1, 2, 3})), "attention: prefix for 3 examples does not fit a batch of 2");
  EXPECT_EQ(text(Mask::prefix({1, 6})), "attention: a prefix of 6 is over the 5 keys");
  EXPECT_EQ(text(Mask::key_lengths({1, 6})), "attention: a key length of 6 is over the 5 keys");
  EXPECT_EQ(text(Mask::key_lengths({1})), "attention: key_lengths for 1 examples do not fit a batch of 2");
  EXPECT_EQ(text(segments({1, 1})), "attention: segments of shape [1, 2] do not fit 2 examples of 5 keys");
  EXPECT_EQ(text(Mask::valid_keys(Array::full({1, 5}, 1, DType::u8))),
            "attention: valid_keys of shape [1, 5] do not fit 2 examples of 5 keys");
  EXPECT_EQ(text(bytes({4, 1})),
            "attention: a mask's allow of shape [1, 1, 4, 1] does not fit 2 examples, 3 heads and scores of "
            "4 x 5");
}

TEST(Mask, WhatAMaskIsMadeOfIsChecked) {
  EXPECT_EQ(error_of([] { Mask::window(0); }), "Mask::window: 0 is not a positive width");
  EXPECT_EQ(error_of([] { Mask::prefix({2, -1}); }), "Mask::prefix: -1 is negative");
  EXPECT_EQ(error_of([] { Mask::key_lengths({-3}); }), "Mask::key_lengths: -3 is negative");
  EXPECT_EQ(error_of([] {
              Mask::segments(ids({2, 3}, {1, 2, 2, 3, 5, 4}));
            }),
            "Mask::segments: ids decrease at [1, 2]: 4 after 5");
  EXPECT_EQ(error_of([] {
              Mask::segments(Array::zeros({1, 3}));
            }),
            "Mask::segments: needs an array of i64, not f32");
  EXPECT_EQ(error_of([] {
              Mask::segments(ids({3}, {1, 2, 3}));
            }),
            "Mask::segments: needs shape [batch or 1, n_k], not [3]");
  EXPECT_EQ(error_of([] {
              Mask::allow(Array::zeros({2, 2}));
            }),
            "Mask::allow: needs an array of u8 (1 = may attend), not f32");
  EXPECT_EQ(error_of([] {
              Mask::bias(Tensor::zeros({2, 2, 2}));
            }),
            "Mask::bias: needs shape [n_q, n_k] or [batch, heads, n_q, n_k], not [2, 2, 2]");
}

TEST(Mask, KnowsWhetherItBlocks) {
  EXPECT_TRUE(Mask().blocks_nothing());
  EXPECT_TRUE(Mask::bias(Tensor::zeros({2, 2})).blocks_nothing());
  for (const Mask& mask : {Mask::prefix({1}), segments({1}), Mask::window(1), Mask::key_lengths({1})}) {
    EXPECT_FALSE(mask.blocks_nothing());
    EXPECT_FALSE((Mask() & mask).blocks_nothing());
  }
}

TEST(Mask, KnowsWhetherExamplesDiffer) {
  const auto same = [](const Mask& mask) {
    return ResolvedMask(mask, 2, 1, 3, 3, "test").same_for_all_examples();
  };
  EXPECT_TRUE(same(Mask::causal() & Mask::window(2) & segments({1, 1, 2})));
  EXPECT_FALSE(same(Mask::key_lengths({1, 2})));
  EXPECT_FALSE(same(Mask::prefix({1, 2})));
  EXPECT_TRUE(same(Mask::valid_keys(Array::of<std::uint8_t>({2, 3}, {1, 0, 1, 1, 1, 1}))));
  EXPECT_FALSE(same(Mask::valid_keys(Array::of<std::uint8_t>({2, 3}, {0, 0, 1, 1, 1, 1}))));
  EXPECT_FALSE(same(Mask::segments(ids({2, 3}, {1, 2, 2, 3, 3, 4}))));
}

}  // namespace
}  // namespace headlab
