#include "framework/ops/shaping.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "framework/autograd/gradcheck.h"
#include "framework/core/pool.h"
#include "framework/ops/arithmetic.h"
#include "tests/support/ops.h"

namespace headlab {
namespace {

Tensor counted(const Shape& shape) {
  std::vector<double> values(static_cast<std::size_t>(shape.size()));
  std::iota(values.begin(), values.end(), 0);
  return Tensor(Array::of<double>(shape, values), true);
}

void expect_gradients(const std::string& name, const GradcheckFunction& f, const std::vector<Shape>& shapes) {
  std::vector<Tensor> inputs;
  for (const Shape& shape : shapes) inputs.emplace_back(random_array(shape, inputs.size() + 1), true);
  const GradcheckResult result = gradcheck(f, inputs);
  EXPECT_TRUE(result) << name << result.message;
}

TEST(Reshape, IsAViewWithTheSameVersion) {
  const Tensor x = counted({2, 3});
  Tensor y = reshape(x, {-1, 2});
  EXPECT_EQ(y.shape(), (Shape{3, 2}));
  EXPECT_TRUE(y.value().shares_buffer_with(x.value()));
  EXPECT_EQ(error_of([&] { reshape(x, {4}); }), "reshape: [2, 3] has 6 elements, [4] has 4");
  const Tensor square = mul(x, x);
  y.change();
  EXPECT_THROW(backward(square, {.seed = random_array({2, 3}, 1)}), Error);
  expect_gradients("reshape",
                   [](std::span<const Tensor> in) {
                     const Tensor flat = reshape(in[0], Shape{35});
                     const Tensor again = reshape(in[0], {35});
                     return mul(flat, again);
                   },
                   {{5, 7}});
}

TEST(Transpose, EveryOrderOfFourAxes) {
  const Shape shape{2, 3, 5, 7};
  const Tensor x = counted(shape);
  std::vector<int> order{0, 1, 2, 3};
  do {
    const Tensor y = transpose(x, order);
    std::array<std::int64_t, 4> i{};
    std::int64_t flat = 0;
    for (i[0] = 0; i[0] < y.dim(0); ++i[0]) {
      for (i[1] = 0; i[1] < y.dim(1); ++i[1]) {
        for (i[2] = 0; i[2] < y.dim(2); ++i[2]) {
          for (i[3] = 0; i[3] < y.dim(3); ++i[3]) {
            std::int64_t source = 0;
            for (int k = 0; k < 4; ++k) {
              const auto at = std::find(order.begin(), order.end(), k) - order.begin();
              source = source * shape[k] + i[static_cast<std::size_t>(at)];
            }
            ASSERT_EQ(y.value().at(flat++), x.value().at(source));
          }
        }
      }
    }
    expect_gradients("transpose",
                     [&](std::span<const Tensor> in) {
                       const Tensor a = transpose(in[0], order);
                       const Tensor b = transpose(in[0], order);
                       return mul(a, b);
                     },
                     {{2, 1, 3, 5}});
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST(Transpose, LargePlanesAndOddSizes) {
  for (const Shape& shape : {Shape{37, 101}, Shape{3, 67, 41}, Shape{1, 1}, Shape{0, 3}, Shape{1, 67, 1}}) {
    const Tensor x(random_array(shape, 1));
    const Tensor there = swap_axes(x, -1, 0);
    EXPECT_EQ(there.dim(0), shape[shape.rank() - 1]);
    EXPECT_TRUE(same_bits(swap_axes(there, 0, -1).value(), x.value())) << shape.str();
  }
  EXPECT_EQ(transpose(Tensor::scalar(3), {}).item(), 3);
}

TEST(Transpose, ErrorsNameTheOrder) {
  const Tensor x = Tensor::zeros({2, 3, 5});
  EXPECT_EQ(error_of([&] { transpose(x, {0, 1}); }), "transpose: an order of 2 axes for shape [2, 3, 5]");
  EXPECT_EQ(error_of([&] {
              transpose(x, {0, 1, -2});
            }),
            "transpose: axis -2 is named twice for shape [2, 3, 5]");
  EXPECT_EQ(error_of([&] { swap_axes(x, 0, 3); }), "swap_axes: axis 3 is out of range for shape [2, 3, 5]");
}

TEST(Slice, LeadingAxisIsAView) {
  const Tensor x = counted({5, 2});
  const Tensor y = slice(x, 0, 1, 3);
  EXPECT_TRUE(y.value().shares_buffer_with(x.value()));
  EXPECT_EQ(numbers(y.value()), (std::vector<double>{2, 3, 4, 5}));
  const Tensor behind_one = counted({1, 5, 2});
  EXPECT_TRUE(slice(behind_one, 1, 1, 3).value().shares_buffer_with(behind_one.value()));
  EXPECT_FALSE(slice(x, 1, 0, 1).value().shares_buffer_with(x.value()));
  backward(y, {.seed = Array::full({2, 2}, 3, DType::f64)});
  EXPECT_EQ(numbers(x.grad()), (std::vector<double>{0, 0, 3, 3, 3, 3, 0, 0, 0, 0}));
}

TEST(Slice, EveryAxisWithOverlaps) {
  for (const int axis : {0, 1, 2, -1}) {
    expect_gradients("slice",
                     [&](std::span<const Tensor> in) {
                       const Tensor a = slice(in[0], axis, 0, 2);
                       const Tensor b = slice(in[0], axis, 1, 3);
                       return mul(a, b);
                     },
                     {{3, 5, 7}});
    expect_gradients("empty slice", [&](std::span<const Tensor> in) { return slice(in[0], axis, 2, 2); },
                     {{3, 5, 7}});
  }
  EXPECT_EQ(numbers(slice(counted({2, 3}), 1, 1, 3).value()), (std::vector<double>{1, 2, 4, 5}));
  EXPECT_EQ(error_of([] {
              slice(Tensor::zeros({2, 3}), 1, 2, 4);
            }),
            "slice: [2, 4) is out of range for axis 1 of shape [2, 3]");
}

TEST(Split, PiecesInOrderAndUnusedOnesGiveZero) {
  const Tensor x = counted({2, 6});
  const std::vector<Tensor> three = split(x, -1, 3);
  EXPECT_EQ(numbers(three[1].value()), (std::vector<double>{2, 3, 8, 9}));
  backward(three[1], {.seed = Array::full({2, 2}, 5, DType::f64)});
  EXPECT_EQ(numbers(x.grad()), (std::vector<double>{0, 0, 5, 5, 0, 0, 0, 0, 5, 5, 0, 0}));
  for (const int axis : {0, 1}) {
    expect_gradients("split",
                     [&](std::span<const Tensor> in) {
                       const std::vector<Tensor> parts = split(in[0], axis, {2, 0, 3, 2});
                       const Tensor p = mul(parts[0], parts[3]);
                       const Tensor used = slice(in[0], axis, 0, 2);
                       return mul(p, used);
                     },
                     {{7, 7}});
  }
  EXPECT_EQ(error_of([&] { split(x, 1, 4); }),
            "split: axis 1 of shape [2, 6] does not split into 4 equal parts");
  EXPECT_EQ(error_of([&] { split(x, 1, {2, 3}); }), "split: 2 pieces of 5 in all for axis 1 of shape [2, 6]");
  EXPECT_EQ(error_of([&] {
              split(x, 1, {2, 5});
            }),
            "split: a piece of 5 does not fit into axis 1 of shape [2, 6]");
}

TEST(Concat, EveryAxis) {
  for (const int axis : {0, 1, 2}) {
    const Shape a = Shape{3, 5, 2}.with(axis, 7);
    const Shape b = Shape{3, 5, 2}.with(axis, 1);
    const Shape none = Shape{3, 5, 2}.with(axis, 0);
    expect_gradients("concat",
                     [&](std::span<const Tensor> in) {
                       return concat({in[0], in[1], in[2], in[0]}, axis);
                     },
                     {a, b, none});
    const Tensor x(random_array(a, 1));
    const Tensor y(random_array(b, 2));
    const Tensor joined = concat({x, y}, axis - 3);
    EXPECT_TRUE(same_bits(slice(joined, axis, 0, 7).value(), x.value()));
    EXPECT_TRUE(same_bits(slice(joined, axis, 7, 8).value(), y.value()));
  }
}

TEST(Concat, ErrorsNameShapesAndTypes) {
  EXPECT_EQ(error_of([] { concat({}, 0); }), "concat: needs at least one tensor");
  EXPECT_EQ(error_of([] {
              concat({Tensor::zeros({2, 3}), Tensor::zeros({2, 5})}, 0);
            }),
            "concat: shapes [2, 3] and [2, 5] differ elsewhere than at axis 0");
  EXPECT_EQ(error_of([] {
              concat({Tensor::zeros({2}), Tensor::zeros({3}, DType::f64)}, 0);
            }),
            "concat: operands differ in type: f32 of shape [2] and f64 of shape [3]");
}

TEST(Shaping, SameBitsForAnyNumberOfThreadsAndNoMemoryStays) {
  const Array a = random_array({307, 11, 37}, 1).to(DType::f32);
  const auto nodes = graph_counters().nodes;
  const auto bytes = pool::counters().live_bytes;
  expect_same_bits_for_any_threads([&] {
    const Tensor x(a.copy(), true);
    const Tensor t = transpose(x, {2, 0, 1});
    const std::vector<Tensor> parts = split(t, 1, {300, 7});
    const Tensor s = slice(t, 2, 1, 9);
    const Tensor joined = concat({parts[1], parts[0]}, 1);
    const Tensor same = slice(joined, 2, 2, 10);
    const Tensor y = mul(s, same);
    backward(y, {.seed = random_array(y.shape(), 2).to(DType::f32)});
    return std::vector<Array>{y.value(), x.grad()};
  });
  EXPECT_EQ(graph_counters().nodes, nodes);
  EXPECT_EQ(pool::counters().live_bytes, bytes);
}

TEST(Shaping, AgreesWithReferenceValues) {
  expect_golden("transpose", [](std::span<const Tensor> in) { return transpose(in[0], {2, 0, 1}); });
  expect_golden("concat", [](std::span<const Tensor> in) { return concat(in, 1); });
  expect_golden("slice", [](std::span<const Tensor> in) { return slice(in[0], 1, 1, 4); });
}

}  // namespace
}  // namespace headlab
