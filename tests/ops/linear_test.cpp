#include "framework/ops/linear.h"

#include "framework/autograd/gradcheck.h"
#include "tests/support/ops.h"

namespace headlab {
namespace {

using In = std::span<const Tensor>;

TEST(Linear, AgreesWithTheGoldens) {
  expect_golden("linear", [](In in) { return linear(in[0], in[1], in[2]); });
  expect_golden("linear_nobias", [](In in) { return linear(in[0], in[1]); });
}

TEST(Linear, GradientsForEverySize) {
  for (const Shape& shape : {Shape{5}, Shape{3, 5}, Shape{2, 3, 5}, Shape{0, 5}, Shape{3, 0}, Shape{1, 1}}) {
    const std::int64_t in = shape[shape.rank() - 1];
    for (const std::int64_t out : {0, 1, 7}) {
      const Tensor x(random_array(shape, 1), true);
      const Tensor weight(random_array({out, in}, 2), true);
      const Tensor bias(random_array({out}, 3), true);
      const auto result = gradcheck([](In t) { return linear(t[0], t[1], t[2]); }, {x, weight, bias});
      EXPECT_TRUE(result) << shape.str() << " to " << out << ": " << result.message;
      EXPECT_TRUE(gradcheck([](In t) { return linear(t[0], t[1]); }, {x, weight}));
    }
  }
}

TEST(Linear, OfNothingIsTheBias) {
  const Tensor y = linear(Tensor::zeros({2, 0}), Tensor::zeros({3, 0}), Tensor::of({3}, {1.0F, 2.0F, 3.0F}));
  EXPECT_EQ(numbers(y.value()), (std::vector<double>{1, 2, 3, 1, 2, 3}));
}

TEST(Linear, SharedTensors) {
  const Tensor square(random_array({5, 5}, 4), true);
  const Tensor row(random_array({5}, 5), true);
  EXPECT_TRUE(gradcheck([](In t) { return linear(t[0], t[0]); }, {square}));
  EXPECT_TRUE(gradcheck([](In t) { return linear(t[1], t[0], t[1]); }, {square, row}));
  EXPECT_TRUE(gradcheck(
      [](In t) {
        const Tensor once = linear(t[1], t[0], t[1]);
        return linear(once, t[0], t[1]);
      },
      {square, row}));
}

TEST(Linear, OnlyOneInputNeedsAGradient) {
  const Tensor x(random_array({3, 5}, 6));
  const Tensor weight(random_array({7, 5}, 7));
  const Tensor bias(random_array({7}, 8));
  EXPECT_TRUE(gradcheck([&](In t) { return linear(t[0], weight, bias); }, {Tensor(x.value(), true)}));
  EXPECT_TRUE(gradcheck([&](In t) { return linear(x, t[0], bias); }, {Tensor(weight.value(), true)}));
  EXPECT_TRUE(gradcheck([&](In t) { return linear(x, weight, t[0]); }, {Tensor(bias.value(), true)}));
}

TEST(Linear, ErrorsNameBothShapes) {
  const Tensor x = Tensor::zeros({2, 5});
  const Tensor weight = Tensor::zeros({3, 5});
  EXPECT_EQ(error_of([&] {
              linear(x, Tensor::zeros({3, 7}));
            }),
            "linear: x of shape [2, 5] and weight of shape [3, 7]: x needs a last axis of 7");
  EXPECT_EQ(error_of([&] { linear(x, Tensor::zeros({5})); }),
            "linear: weight of shape [5], it needs [out, in]");
  EXPECT_EQ(error_of([&] { linear(x, weight, Tensor::zeros({5})); }),
            "linear: bias of shape [5] and weight of shape [3, 5]: bias needs [3]");
  EXPECT_EQ(error_of([&] {
              linear(x, Tensor::zeros({3, 5}, DType::f64));
            }),
            "linear: x is f32, weight is f64");
  EXPECT_EQ(error_of([&] { linear(x, weight, Tensor::zeros({3}, DType::f64)); }),
            "linear: bias is f64, x is f32");
}

TEST(Linear, SameBitsForAnyNumberOfThreads) {
  const Array start = random_array({331, 67}, 9).to(DType::f32);
  const Array weights = random_array({149, 67}, 10).to(DType::f32);
  const Array seed = random_array({331, 149}, 11).to(DType::f32);
  expect_same_bits_for_any_threads([&] {
    const Tensor x(start, true);
    const Tensor weight(weights, true);
    const Tensor bias(Array::full({149}, 0.1), true);
    const Tensor y = linear(x, weight, bias);
    backward(y, {.seed = seed});
    return std::vector<Array>{y.value(), x.grad(), weight.grad(), bias.grad()};
  });
}

TEST(Linear, ARowDoesNotDependOnItsNeighbours) {
  const Array x = random_array({17, 29}, 12).to(DType::f32);
  const Tensor weight(random_array({13, 29}, 13).to(DType::f32));
  const Tensor bias(random_array({13}, 14).to(DType::f32));
  const Array all = linear(Tensor(x), weight, bias).value();
  for (const std::int64_t row : {0, 5, 16}) {
    const Tensor alone(x.range(row, row + 1).copy());
    EXPECT_TRUE(same_bits(linear(alone, weight, bias).value(), all.range(row, row + 1)));
  }
}

}  // namespace
}  // namespace headlab
