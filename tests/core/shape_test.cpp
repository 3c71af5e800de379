#include "framework/core/shape.h"

#include "framework/core/array.h"
#include "tests/support/errors.h"

namespace headlab {
namespace {

TEST(Shape, KnowsItsSizes) {
  const Shape shape{2, 3, 5};
  EXPECT_EQ(shape.rank(), 3);
  EXPECT_EQ(shape.size(), 30);
  EXPECT_EQ(shape[1], 3);
  EXPECT_EQ(shape.dim(-1), 5);
  EXPECT_EQ(shape.product(1, 3), 15);
  EXPECT_EQ(shape.product(1, 1), 1);
  EXPECT_EQ(shape.str(), "[2, 3, 5]");
  EXPECT_EQ(fmt::format("{}", shape), "[2, 3, 5]");
}

TEST(Shape, OfNoAxesIsOneNumber) {
  EXPECT_EQ(Shape{}.rank(), 0);
  EXPECT_EQ(Shape{}.size(), 1);
  EXPECT_EQ(Shape{}.str(), "[]");
}

TEST(Shape, AnAxisOfSizeZeroMakesItEmpty) {
  EXPECT_EQ((Shape{0, 3}).size(), 0);
  EXPECT_EQ((Shape{3, 0}).size(), 0);
  EXPECT_EQ((Shape{0, 3}).product(1, 2), 3);
}

TEST(Shape, SizesAre64Bit) {
  const Shape shape{8192, 262145};
  EXPECT_EQ(shape.size(), 2'147'491'840);
  EXPECT_EQ(shape.size() * bytes_of(DType::f32), 8'589'967'360);
  EXPECT_EQ((Shape{INT64_MAX}).size(), INT64_MAX);
  EXPECT_EQ((Shape{INT64_MAX, 1, 0}).size(), 0);
}

TEST(Shape, RefusesImpossibleSizes) {
  const std::int64_t large = std::int64_t{1} << 32;
  EXPECT_EQ(error_of([&] {
              Shape{large, large};
            }),
            "shape: [4294967296, 4294967296] has more than 2^63 - 1 elements");
  EXPECT_EQ(error_of([] {
              Shape{INT64_MAX, 2};
            }),
            "shape: [9223372036854775807, 2] has more than 2^63 - 1 elements");
  // Strides of an empty array must not overflow either.
  EXPECT_EQ(error_of([&] {
              Shape{0, large, large};
            }),
            "shape: [0, 4294967296, 4294967296] has more than 2^63 - 1 elements");
  EXPECT_EQ(error_of([] { Shape{3, -1}; }), "shape: negative size -1 in [3, -1]");
  EXPECT_EQ(error_of([] { Shape{1, 1, 1, 1, 1, 1, 1, 1, 1}; }), "shape: 9 axes, at most 8 are possible");
}

TEST(Shape, CountsAxesFromBothEnds) {
  const Shape shape{2, 5, 7};
  EXPECT_EQ(shape.checked_axis(0, "op"), 0);
  EXPECT_EQ(shape.checked_axis(-3, "op"), 0);
  EXPECT_EQ(shape.checked_axis(2, "op"), 2);
  EXPECT_EQ(error_of([&] { shape.checked_axis(3, "softmax"); }),
            "softmax: axis 3 is out of range for shape [2, 5, 7]");
  EXPECT_EQ(error_of([&] { shape.dim(-4, "sum"); }), "sum: axis -4 is out of range for shape [2, 5, 7]");
  EXPECT_EQ(error_of([&] { Shape{}.checked_axis(0, "sum"); }), "sum: axis 0 is out of range for shape []");
}

TEST(Shape, ReplacesDropsAndInsertsAxes) {
  const Shape shape{2, 5, 7};
  EXPECT_EQ(shape.with(-1, 3), (Shape{2, 5, 3}));
  EXPECT_EQ(shape.without(0), (Shape{5, 7}));
  EXPECT_EQ(shape.without(-1), (Shape{2, 5}));
  EXPECT_EQ(shape.inserted(0, 1), (Shape{1, 2, 5, 7}));
  EXPECT_EQ(shape.inserted(3, 1), (Shape{2, 5, 7, 1}));
  EXPECT_EQ(error_of([&] { shape.inserted(4, 1); }), "shape: cannot insert an axis at 4 into [2, 5, 7]");
}

TEST(Shape, EqualMeansRankAndSizes) {
  EXPECT_EQ((Shape{2, 3}), (Shape{2, 3}));
  EXPECT_FALSE((Shape{2, 3}) == (Shape{2, 3, 1}));
  EXPECT_FALSE((Shape{2, 3}) == (Shape{3, 2}));
  EXPECT_EQ(Shape{}, (Shape{}));
}

TEST(Broadcast, AlignsAtTheLastAxis) {
  EXPECT_EQ(broadcast({2, 3}, {1, 3}, "add"), (Shape{2, 3}));
  EXPECT_EQ(broadcast({2, 3}, {3}, "add"), (Shape{2, 3}));
  EXPECT_EQ(broadcast({2, 3}, {}, "add"), (Shape{2, 3}));
  EXPECT_EQ(broadcast({2, 1}, {1, 3}, "add"), (Shape{2, 3}));
  EXPECT_EQ(broadcast({5}, {7, 2, 1}, "add"), (Shape{7, 2, 5}));
  EXPECT_EQ(broadcast({0, 3}, {1, 3}, "add"), (Shape{0, 3}));
  EXPECT_EQ(error_of([] { broadcast({2, 3}, {2}, "add"); }), "add: shapes [2, 3] and [2] do not broadcast");
  EXPECT_EQ(error_of([] {
              broadcast({0, 3}, {2, 3}, "mul");
            }),
            "mul: shapes [0, 3] and [2, 3] do not broadcast");
}

}  // namespace
}  // namespace headlab
