#include "framework/ops/dropout.h"

#include <limits>

#include "framework/autograd/gradcheck.h"
#include "framework/ops/arithmetic.h"
#include "tests/support/ops.h"

namespace headlab {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
const DropoutKey key{.key = 0x123456789ABCDEF, .counter = 77, .first_element = 0};

TEST(Dropout, PatternIsAFunctionOfKeyCounterAndElement) {
  const double p = 0.3;
  for (const std::uint64_t first : {0ULL, 1ULL, 2ULL, 3ULL, 17ULL, 63ULL, (1ULL << 34U) - 5}) {
    const DropoutKey here{key.key, key.counter, first};
    const Tensor y = dropout(Tensor::full({211}, 1, DType::f64), p, here);
    for (std::int64_t i = 0; i < 211; ++i) {
      const std::uint64_t e = first + static_cast<std::uint64_t>(i);
      const std::uint32_t word = philox(key.key, key.counter, e / 64 * 16 + e % 16)[e / 16 % 4];
      const bool dropped = word < std::nearbyint(p * 0x1p32);
      ASSERT_EQ(y.value().at(i), dropped ? 0 : 1 / (1 - p)) << first << "+" << i;
    }
  }
}

TEST(Dropout, PiecesOfABatchGetTheirPartOfThePattern) {
  const Array x = random_array({7, 13}, 1).to(DType::f32);
  const Tensor whole = dropout(Tensor(x), 0.5, key);
  for (std::int64_t row = 0; row < 7; ++row) {
    DropoutKey here = key;
    here.first_element = static_cast<std::uint64_t>(row * 13);
    EXPECT_TRUE(same_bits(dropout(Tensor(x.range(row, row + 1)), 0.5, here).value(),
                          whole.value().range(row, row + 1)));
  }
}

TEST(Dropout, DropsTheShareAskedFor) {
  constexpr std::int64_t n = 1'000'003;
  for (const double p : {0.1, 0.5, 0.9}) {
    const Tensor y = dropout(Tensor::full({n}, 1), p, key);
    std::int64_t dropped = 0;
    for (const float v : y.value().values<float>()) dropped += v == 0;
    const double deviation = std::sqrt(p * (1 - p) / static_cast<double>(n));
    EXPECT_NEAR(static_cast<double>(dropped) / static_cast<double>(n), p, 5 * deviation);
  }
  const Tensor ones = Tensor::full({101}, 1);
  EXPECT_FALSE(same_bits(dropout(ones, 0.5, key).value(), dropout(ones, 0.5, {key.key + 1, 77, 0}).value()));
  EXPECT_FALSE(same_bits(dropout(ones, 0.5, key).value(), dropout(ones, 0.5, {key.key, 78, 0}).value()));
}

TEST(Dropout, EndsOfTheRange) {
  const Tensor x(random_array({3, 5}, 1), true);
  EXPECT_TRUE(same_bits(dropout(x, 0, key).value(), x.value()));
  const Tensor none = dropout(x, 1, key);
  EXPECT_EQ(numbers(none.value()), std::vector<double>(15, 0));
  backward(none, {.seed = random_array({3, 5}, 2)});
  EXPECT_EQ(numbers(x.grad()), std::vector<double>(15, 0));
  EXPECT_EQ(dropout(Tensor::full({1}, nan), 1, key).item(), 0);
  EXPECT_EQ(dropout(Tensor::zeros({0, 3}), 0.5, key).shape(), (Shape{0, 3}));
  EXPECT_EQ(error_of([&] { dropout(x, -0.1, key); }), "dropout: p = -0.1 is not in [0, 1]");
  EXPECT_EQ(error_of([&] { dropout(x, 1.5, key); }), "dropout: p = 1.5 is not in [0, 1]");
  EXPECT_EQ(error_of([&] { dropout(x, nan, key); }), "dropout: p = nan is not in [0, 1]");
  EXPECT_EQ(error_of([&] { dropout(Tensor::zeros({2}, DType::i64), 0.5, key); }),
            "dropout: needs f32 or f64, not i64");
}

TEST(Dropout, GradientsAgreeWithDifferences) {
  const auto run = [](std::span<const Tensor> in) {
    const Tensor a = dropout(in[0], 0.4, key);
    const Tensor b = dropout(in[0], 0.2, {key.key, 78, 3});
    return add(a, b);
  };
  for (const Shape& shape : {Shape{7, 11}, Shape{}, Shape{0}, Shape{1}}) {
    const GradcheckResult result = gradcheck(run, {Tensor(random_array(shape, 1), true)});
    EXPECT_TRUE(result) << result.message;
  }
}

TEST(Dropout, FactorsAreThePatternOfF32) {
  std::vector<float> factors(1009);
  DropoutKey here = key;
  here.first_element = 6;
  kernels::dropout_factors(here, 0.3, factors.data(), 1009);
  const Tensor y = dropout(Tensor::full({1009}, 1), 0.3, here);
  EXPECT_EQ(numbers(y.value()), std::vector<double>(factors.begin(), factors.end()));
}

TEST(Dropout, SameBitsForAnyNumberOfThreads) {
  const Array a = random_array({100'003}, 1).to(DType::f32);
  expect_same_bits_for_any_threads([&] {
    const Tensor x(a.copy(), true);
    const Tensor y = dropout(x, 0.3, key);
    backward(y, {.seed = random_array(y.shape(), 2).to(DType::f32)});
    return std::vector<Array>{y.value(), x.grad()};
  });
}

}  // namespace
}  // namespace headlab
