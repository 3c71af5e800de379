#include "framework/core/array.h"

#include "framework/core/pool.h"
#include "tests/support/errors.h"

namespace headlab {
namespace {

TEST(Array, HoldsTheGivenNumbersRowByRow) {
  const Array a = Array::of<float>({2, 3}, {1, 2, 3, 4, 5, 6});
  EXPECT_EQ(a.dtype(), DType::f32);
  EXPECT_EQ(a.rank(), 2);
  EXPECT_EQ(a.dim(-1), 3);
  EXPECT_EQ(a.bytes(), 24);
  EXPECT_EQ(a.data<float>()[3], 4);
  EXPECT_EQ(a.values<float>().size(), 6U);
  EXPECT_EQ(a.at(5), 6);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(a.raw()) % 64, 0U);
  EXPECT_EQ(Array::of<std::int64_t>({1}, {INT64_MAX}).bytes(), 8);
  EXPECT_EQ(error_of([] {
              Array::of<float>({2, 2}, {1, 2, 3});
            }),
            "array: 3 values for shape [2, 2], which has 4");
}

TEST(Array, MadeByDefaultIsAbsent) {
  const Array absent;
  EXPECT_FALSE(absent);
  EXPECT_FALSE(absent.copy());
  EXPECT_FALSE(absent.unique());
  EXPECT_FALSE(absent.shares_buffer_with(absent));
  EXPECT_TRUE(Array({0}));
  EXPECT_EQ(error_of([&] { absent.item(); }), "item: needs an array with one element, not shape [0]");
}

TEST(Array, ZerosAndFull) {
  for (const DType dtype : {DType::f32, DType::f64, DType::i64, DType::u8}) {
    const Array zeros = Array::zeros({3, 7}, dtype);
    const Array full = Array::full({3, 7}, 5, dtype);
    EXPECT_EQ(full.dtype(), dtype);
    for (std::int64_t i = 0; i < 21; ++i) {
      EXPECT_EQ(zeros.at(i), 0);
      EXPECT_EQ(full.at(i), 5);
    }
  }
  EXPECT_EQ(Array::zeros({0, 3}).size(), 0);
  EXPECT_EQ(Array::full({}, 2).item(), 2);
}

TEST(Array, HandlesShareTheNumbersAndCopiesDoNot) {
  Array a = Array::zeros({3});
  EXPECT_TRUE(a.unique());
  Array handle = a;
  const Array copy = a.copy();
  EXPECT_FALSE(a.unique());
  EXPECT_TRUE(a.shares_buffer_with(handle));
  EXPECT_FALSE(a.shares_buffer_with(copy));
  handle.data<float>()[1] = 7;
  EXPECT_EQ(a.at(1), 7);
  EXPECT_EQ(copy.at(1), 0);
  Array moved = std::move(handle);
  EXPECT_FALSE(handle);  // NOLINT: what a moved-from array is, is part of the contract
  moved = Array();
  EXPECT_TRUE(a.unique());
}

TEST(Array, ReshapeSharesTheBuffer) {
  const Array a = Array::of<float>({2, 3}, {1, 2, 3, 4, 5, 6});
  const Array b = a.reshape({3, -1});
  EXPECT_EQ(b.shape(), (Shape{3, 2}));
  EXPECT_TRUE(a.shares_buffer_with(b));
  EXPECT_EQ(a.reshape({-1}).shape(), (Shape{6}));
  EXPECT_EQ(Array({1}).reshape(Shape{}).shape(), Shape{});
  EXPECT_EQ(Array({0, 3}).reshape({3, -1}).shape(), (Shape{3, 0}));
  EXPECT_EQ(error_of([&] { a.reshape({4, 2}); }), "reshape: [2, 3] has 6 elements, [4, 2] has 8");
  EXPECT_EQ(error_of([&] { a.reshape({4, -1}); }), "reshape: [2, 3] has 6 elements, [4, 1] has 4");
  EXPECT_EQ(error_of([&] { a.reshape({-1, -1}); }), "shape: negative size -1 in [1, -1]");
}

TEST(Array, RangeSharesTheBuffer) {
  const Array a = Array::of<double>({3, 2}, {1, 2, 3, 4, 5, 6});
  const Array rows = a.range(1, 3);
  EXPECT_EQ(rows.shape(), (Shape{2, 2}));
  EXPECT_EQ(rows.at(0), 3);
  EXPECT_TRUE(a.shares_buffer_with(rows));
  EXPECT_EQ(rows.range(1, 2).at(1), 6);
  EXPECT_EQ(a.range(3, 3).size(), 0);
  EXPECT_EQ(error_of([&] { a.range(2, 4); }), "range: [2, 4) is out of range for shape [3, 2]");
  EXPECT_EQ(error_of([&] { a.range(2, 1); }), "range: [2, 1) is out of range for shape [3, 2]");
  EXPECT_EQ(error_of([&] { a.range(-1, 1); }), "range: [-1, 1) is out of range for shape [3, 2]");
  EXPECT_EQ(error_of([] { Array(Shape{}).range(0, 1); }), "range: an array of shape [] has no leading axis");
}

TEST(Array, ConvertsBetweenTypes) {
  const Array a = Array::of<double>({3}, {0.1, -2, 16777217});
  const Array f = a.to(DType::f32);
  EXPECT_EQ(f.data<float>()[0], 0.1F);
  EXPECT_EQ(f.data<float>()[2], 16777216.0F);  // to nearest, ties to even
  EXPECT_EQ(a.to(DType::i64).data<std::int64_t>()[1], -2);
  EXPECT_EQ(Array::of<std::uint8_t>({1}, {255}).to(DType::f64).item(), 255);
  EXPECT_FALSE(a.to(DType::f64).shares_buffer_with(a));
}

TEST(Array, RefusesTheWrongTypeAndIndex) {
  const Array a({2, 3}, DType::f64);
  EXPECT_EQ(error_of([&] { a.data<float>(); }), "array: holds f64, asked for f32 (shape [2, 3])");
  EXPECT_EQ(error_of([&] { a.at(6); }), "array: index 6 is out of range for shape [2, 3]");
  EXPECT_EQ(error_of([&] { a.at(-1); }), "array: index -1 is out of range for shape [2, 3]");
  EXPECT_EQ(error_of([&] { a.item(); }), "item: needs an array with one element, not shape [2, 3]");
}

TEST(Array, AnImpossibleSizeIsAnErrorAndTheProcessGoesOn) {
  const pool::Counters before = pool::counters();
  const std::int64_t huge = std::int64_t{1} << 62;
  EXPECT_EQ(error_of([&] {
              Array({huge, 1});
            }),
            "array: [4611686018427387904, 1] of f32 needs more than 2^62 bytes");
  EXPECT_EQ(error_of([&] {
              Array({huge, 1}, DType::u8);
            }),
            "array: no memory for [4611686018427387904, 1] of u8, 4611686018427387904 bytes");
  EXPECT_EQ(error_of([] { Array({std::int64_t{1} << 46}); }),
            "array: no memory for [70368744177664] of f32, 281474976710656 bytes");
  EXPECT_EQ(pool::counters().live_blocks, before.live_blocks);
  EXPECT_EQ(pool::counters().live_bytes, before.live_bytes);
  EXPECT_EQ(Array::full({1009}, 3).at(1008), 3);
}

TEST(Array, GivesItsBlockBack) {
  const pool::Counters before = pool::counters();
  {
    const Array a = Array::zeros({7, 11});
    const Array b = a.range(1, 2);
    EXPECT_EQ(pool::counters().live_blocks, before.live_blocks + 1);
  }
  EXPECT_EQ(pool::counters().live_blocks, before.live_blocks);
  EXPECT_EQ(pool::counters().live_bytes, before.live_bytes);
}

TEST(Dispatch, KnowsTheFloatingTypes) {
  EXPECT_EQ(dispatch(DType::f32, "op", [](auto zero) { return sizeof zero; }), 4U);
  EXPECT_EQ(dispatch(DType::f64, "op", [](auto zero) { return sizeof zero; }), 8U);
  EXPECT_EQ(error_of([] { dispatch(DType::i64, "exp", [](auto zero) { return sizeof zero; }); }),
            "exp: needs f32 or f64, not i64");
}

}  // namespace
}  // namespace headlab
