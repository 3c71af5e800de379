#include "framework/ops/softmax.h"

#include <cmath>
#include <limits>

#include "framework/autograd/gradcheck.h"
#include "tests/support/ops.h"

namespace headlab {
namespace {

constexpr float inf = std::numeric_limits<float>::infinity();
constexpr float nan = std::numeric_limits<float>::quiet_NaN();

TEST(Softmax, AgreesWithTheGoldens) {
  for (const int axis : {0, 1, 2}) {
    expect_golden("softmax_axis" + std::to_string(axis),
                  [axis](std::span<const Tensor> in) { return softmax(in[0], axis); });
    expect_golden("softmax_axis" + std::to_string(axis),
                  [axis](std::span<const Tensor> in) { return softmax(in[0], axis - 3); });
  }
  expect_golden("softmax_spread", [](std::span<const Tensor> in) { return softmax(in[0]); });
  expect_golden("log_softmax", [](std::span<const Tensor> in) { return log_softmax(in[0]); });
}

TEST(Softmax, IsStableForAnyFiniteScores) {
  for (const int lines : {1, 2}) {  // the last axis and an inner one go through different loops
    const auto of = [lines](std::initializer_list<float> row) {
      Array x(Shape{static_cast<std::int64_t>(row.size()), lines});
      std::int64_t i = 0;
      for (const float v : row) {
        for (int j = 0; j < lines; ++j) x.data<float>()[i++] = v;
      }
      const Array y = softmax(Tensor(x), 0).value();
      std::vector<double> first;
      for (std::size_t k = 0; k < row.size(); ++k)
        first.push_back(y.at(static_cast<std::int64_t>(k) * lines));
      return first;
    };
    const auto near = [](const std::vector<double>& got, const std::vector<double>& want) {
      for (std::size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(got[i], want[i], 1e-6);
    };
    near(of({1000, 1000, 999}), {0.422319, 0.422319, 0.155362});
    near(of({-1000, -1001, -1002}), {0.665241, 0.244728, 0.090031});
    EXPECT_EQ(of({3e38F, -3e38F, 0}), (std::vector<double>{1, 0, 0}));
    EXPECT_EQ(of({5}), std::vector<double>{1});
    EXPECT_EQ(of({-inf, 2, -inf}), (std::vector<double>{0, 1, 0}));
    for (const auto& row : {of({1, nan}), of({nan, 1}), of({-inf, -inf}), of({inf, 1}), of({nan, -inf})}) {
      for (const double v : row) EXPECT_TRUE(std::isnan(v));
    }
  }
}

TEST(Softmax, ANanAnywhereMakesItsOwnRowNanOnly) {
  for (std::int64_t place = 0; place < 37; ++place) {
    Array x = Array::zeros({2, 37});
    x.data<float>()[place] = nan;
    for (const Array& y : {softmax(Tensor(x)).value(), log_softmax(Tensor(x)).value()}) {
      for (std::int64_t i = 0; i < 37; ++i) {
        EXPECT_TRUE(std::isnan(y.at(i)));
        EXPECT_FALSE(std::isnan(y.at(37 + i)));
      }
    }
  }
}

TEST(LogSoftmax, KeepsSmallWeights) {
  const Tensor x = Tensor::of({3}, {1000.0F, 0.0F, -1000.0F});
  EXPECT_EQ(numbers(log_softmax(x).value()), (std::vector<double>{0, -1000, -2000}));
}

TEST(Softmax, GradientsOfEveryAxisAndSize) {
  for (const Shape& shape : {Shape{5}, Shape{1}, Shape{2, 3, 7}, Shape{3, 1, 19}, Shape{0, 3}, Shape{3, 0}}) {
    for (int axis = 0; axis < shape.rank(); ++axis) {
      const Tensor x(random_array(shape, 1), true);
      for (const auto f : {softmax, log_softmax}) {
        const auto result = gradcheck([&](std::span<const Tensor> in) { return f(in[0], axis); }, {x});
        EXPECT_TRUE(result) << shape.str() << " axis " << axis << ": " << result.message;
      }
    }
  }
}

TEST(Softmax, UsedTwiceAddsItsGradients) {
  const auto f = [](std::span<const Tensor> in) {
    const Tensor y = softmax(in[0], 0);
    return softmax(y, 1);
  };
  EXPECT_TRUE(gradcheck(f, {Tensor(random_array({3, 5}, 2), true)}));
}

TEST(Softmax, NamesAnAxisOutOfRange) {
  EXPECT_EQ(error_of([] {
              softmax(Tensor::zeros({2, 5, 7}), 3);
            }),
            "softmax: axis 3 is out of range for shape [2, 5, 7]");
  EXPECT_EQ(error_of([] { log_softmax(Tensor::zeros({}), 0); }),
            "log_softmax: axis 0 is out of range for shape []");
  EXPECT_EQ(error_of([] { softmax(Tensor::zeros({2}, DType::i64)); }), "softmax: needs f32 or f64, not i64");
}

TEST(Softmax, SameBitsForAnyNumberOfThreads) {
  const Array start = random_array({37, 53, 97}, 3).to(DType::f32);
  const Array seed = random_array({37, 53, 97}, 4).to(DType::f32);
  for (const auto f : {softmax, log_softmax}) {
    for (const int axis : {0, 1, 2}) {
      expect_same_bits_for_any_threads([&] {
        const Tensor x(start, true);
        const Tensor y = f(x, axis);
        backward(y, {.seed = seed});
        return std::vector<Array>{y.value(), x.grad()};
      });
    }
  }
}

TEST(Softmax, ARowDoesNotDependOnItsNeighbours) {
  const Array x = random_array({17, 29}, 5).to(DType::f32);
  const Array all = softmax(Tensor(x)).value();
  EXPECT_TRUE(same_bits(softmax(Tensor(x.range(16, 17).copy())).value(), all.range(16, 17)));
}

}  // namespace
}  // namespace headlab
