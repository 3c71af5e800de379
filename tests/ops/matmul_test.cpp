#include "framework/ops/matmul.h"

#include "framework/autograd/gradcheck.h"
#include "tests/support/ops.h"

namespace headlab {
namespace {

using In = std::span<const Tensor>;

Tensor product(In in) { return matmul(in[0], in[1]); }

TEST(Matmul, AgreesWithTheGoldens) {
  expect_golden("matmul_batched", product);
  expect_golden("matmul_broadcast", product);
}

TEST(Matmul, GradientsUnderBroadcasting) {
  const std::vector<std::pair<Shape, Shape>> pairs{
      {{3, 5}, {5, 7}},          {{2, 3, 5}, {5, 7}},     {{3, 5}, {2, 5, 7}},        {{2, 3, 5}, {2, 5, 7}},
      {{2, 1, 3, 5}, {3, 5, 2}}, {{1, 2, 3}, {13, 3, 2}}, {{11, 1, 2, 3}, {2, 3, 2}}, {{1, 1}, {1, 1}},
      {{0, 3}, {3, 2}},          {{2, 0}, {0, 3}},        {{2, 3}, {3, 0}},           {{0, 2, 3}, {1, 3, 2}},
      {{2, 3}, {0, 3, 2}}};
  for (const auto& pair : pairs) {
    const Tensor a(random_array(pair.first, 1), true);
    const Tensor b(random_array(pair.second, 2), true);
    const auto result = gradcheck(product, {a, b});
    EXPECT_TRUE(result) << pair.first.str() << " " << pair.second.str() << ": " << result.message;
  }
}

TEST(Matmul, ValuesUnderBroadcasting) {
  const Tensor a(random_array({11, 1, 3, 5}, 3));
  const Tensor b(random_array({2, 5, 7}, 4));
  const Array y = matmul(a, b).value();
  ASSERT_EQ(y.shape(), (Shape{11, 2, 3, 7}));
  for (std::int64_t i = 0; i < 11; ++i) {
    for (std::int64_t j = 0; j < 2; ++j) {
      const Tensor left(a.value().range(i, i + 1).reshape({3, 5}));
      const Tensor right(b.value().range(j, j + 1).reshape({5, 7}));
      EXPECT_TRUE(same_bits(matmul(left, right).value(),
                            y.range(i, i + 1).reshape({2, 3, 7}).range(j, j + 1).reshape({3, 7})));
    }
  }
}

TEST(Matmul, OfATensorWithItself) {
  const auto square = [](In in) { return matmul(in[0], in[0]); };
  EXPECT_TRUE(gradcheck(square, {Tensor(random_array({5, 5}, 5), true)}));
  EXPECT_TRUE(gradcheck(square, {Tensor(random_array({11, 3, 3}, 6), true)}));
}

TEST(Matmul, Errors) {
  const Tensor a = Tensor::zeros({2, 3, 5});
  EXPECT_EQ(error_of([&] {
              matmul(a, Tensor::zeros({3, 5}));
            }),
            "matmul: shapes [2, 3, 5] and [3, 5]: the inner sizes 5 and 3 differ");
  EXPECT_EQ(error_of([&] { matmul(a, Tensor::zeros({5})); }),
            "matmul: shapes [2, 3, 5] and [5]: both need at least two axes");
  EXPECT_EQ(error_of([&] {
              matmul(a, Tensor::zeros({3, 5, 7}));
            }),
            "matmul: shapes [2, 3, 5] and [3, 5, 7]: their leading axes do not broadcast");
  EXPECT_EQ(error_of([&] {
              matmul(a, Tensor::zeros({5, 7}, DType::f64));
            }),
            "matmul: types f32 and f64 differ");
}

TEST(Matmul, SameBitsForAnyNumberOfThreads) {
  for (const std::int64_t batch : {3, 23}) {
    const Array left = random_array({batch, 331, 97}, 7).to(DType::f32);
    const Array right = random_array({97, 101}, 8).to(DType::f32).reshape({1, 97, 101});
    const Array seed = random_array({batch, 331, 101}, 9).to(DType::f32);
    expect_same_bits_for_any_threads([&] {
      const Tensor a(left, true);
      const Tensor b(right, true);
      const Tensor y = matmul(a, b);
      backward(y, {.seed = seed});
      return std::vector<Array>{y.value(), a.grad(), b.grad()};
    });
  }
}

}  // namespace
}  // namespace headlab
