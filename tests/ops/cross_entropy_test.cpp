#include "framework/ops/cross_entropy.h"

#include <limits>

#include "framework/autograd/gradcheck.h"
#include "framework/core/pool.h"
#include "framework/ops/arithmetic.h"
#include "framework/ops/reduction.h"
#include "framework/ops/softmax.h"
#include "tests/support/ops.h"

namespace headlab {
namespace {

using In = std::span<const Tensor>;

Array targets_of(Shape shape, const std::vector<std::int64_t>& ids) {
  return Array::of<std::int64_t>(shape, ids);
}

TEST(CrossEntropy, AgreesWithTheGoldens) {
  expect_golden("cross_entropy", [](In in) { return cross_entropy(in[0], in[1].value()).loss; });
  expect_golden("cross_entropy_smooth",
                [](In in) { return cross_entropy(in[0], in[1].value(), {.label_smoothing = 0.1}).loss; });
}

TEST(CrossEntropy, OfScoresFarApart) {
  const Tensor wrong = Tensor::of({1, 2}, {1000.0F, 0.0F}, true);
  const CrossEntropy one = cross_entropy(wrong, targets_of({1}, {1}));
  EXPECT_EQ(one.loss.item(), 1000);
  backward(one.loss);
  EXPECT_EQ(numbers(wrong.grad()), (std::vector<double>{1, -1}));
  EXPECT_EQ(cross_entropy(wrong, targets_of({1}, {0})).loss.item(), 0);
  // log Σ exp is kept apart from the maximum: 1e6 + log 2 alone would lose digits.
  const Tensor large = Tensor::of({1, 2}, {1e6F, 1e6F}, true);
  const CrossEntropy equal = cross_entropy(large, targets_of({1}, {0}));
  EXPECT_NEAR(equal.loss.item(), 0.693147, 1e-6);
  backward(equal.loss);
  EXPECT_NEAR(large.grad().at(0), -0.5, 1e-6);
}

TEST(CrossEntropy, CountsTargetsThatAreNotIgnored) {
  const Tensor x = Tensor::of({2, 3}, {0.0F, 1.0F, 2.0F, 0.0F, 1.0F, 2.0F}, true);
  const CrossEntropy one = cross_entropy(x, targets_of({2}, {2, -1}));
  EXPECT_NEAR(one.loss.item(), 0.407606, 1e-6);
  EXPECT_EQ(one.counted, 1);
  backward(one.loss);
  for (const std::int64_t i : {3, 4, 5}) EXPECT_EQ(x.grad().at(i), 0);
  EXPECT_NEAR(x.grad().at(2), 0.665241 - 1, 1e-6);

  Tensor y(x.value(), true);
  const CrossEntropy none = cross_entropy(y, targets_of({2}, {-1, -1}));
  EXPECT_EQ(none.loss.item(), 0);
  EXPECT_EQ(none.counted, 0);
  backward(none.loss);
  EXPECT_EQ(numbers(y.grad()), std::vector<double>(6, 0));

  const Tensor empty(Array({0, 3}), true);
  const CrossEntropy no_rows = cross_entropy(empty, targets_of({0}, {}));
  EXPECT_EQ(no_rows.loss.item(), 0);
  EXPECT_EQ(no_rows.counted, 0);
  backward(no_rows.loss);
  EXPECT_EQ(empty.grad().shape(), (Shape{0, 3}));
}

TEST(CrossEntropy, AnIgnoredRowMayHoldNan) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Tensor x = Tensor::of({2, 2}, {0.0F, 0.0F, nan, 1.0F}, true);
  const CrossEntropy loss = cross_entropy(x, targets_of({2}, {0, 7}), {.ignore = 7});
  EXPECT_NEAR(loss.loss.item(), 0.693147, 1e-6);
  backward(loss.loss);
  EXPECT_EQ(x.grad().at(2), 0);
  EXPECT_TRUE(std::isnan(cross_entropy(x, targets_of({2}, {0, 1})).loss.item()));
}

TEST(CrossEntropy, Errors) {
  const Tensor x = Tensor::zeros({2, 3});
  EXPECT_EQ(error_of([&] {
              cross_entropy(x, targets_of({2}, {2, 3}));
            }),
            "cross_entropy: target 3 at position [1] is neither one of 3 classes nor the ignored value -1");
  EXPECT_EQ(error_of([&] {
              cross_entropy(x, targets_of({2}, {2, -4}));
            }),
            "cross_entropy: target -4 at position [1] is neither one of 3 classes nor the ignored value -1");
  EXPECT_EQ(error_of([&] {
              cross_entropy(x, targets_of({2}, {2, -1}), {.ignore = std::nullopt});
            }),
            "cross_entropy: target -1 at position [1] is not one of 3 classes");
  EXPECT_EQ(error_of([&] {
              cross_entropy(x, targets_of({3}, {0, 0, 0}));
            }),
            "cross_entropy: logits of shape [2, 3] and targets of shape [3]; logits need one more axis, the "
            "classes");
  EXPECT_EQ(error_of([&] { cross_entropy(x, Array::zeros({2})); }),
            "cross_entropy: targets are f32, they need to be i64");
  EXPECT_EQ(error_of([&] {
              cross_entropy(x, targets_of({2}, {0, 0}), {.label_smoothing = 1.5});
            }),
            "cross_entropy: label_smoothing 1.5 is not in [0, 1]");
}

TEST(CrossEntropy, GradientsForEverySize) {
  for (const std::int64_t classes : {1, 5, 19}) {
    const Tensor x(random_array({2, 3, classes}, 1), true);
    const Array targets = targets_of({2, 3}, {0, -1, classes - 1, 0, classes / 2, -1});
    for (const double smoothing : {0.0, 0.3, 1.0}) {
      const auto f = [&](In in) {
        return cross_entropy(in[0], targets, {.label_smoothing = smoothing}).loss;
      };
      const auto result = gradcheck(f, {x});
      EXPECT_TRUE(result) << classes << " classes, smoothing " << smoothing << ": " << result.message;
    }
  }
}

TEST(CrossEntropy, LargeVocabulariesAgreeWithLogSoftmax) {
  constexpr std::int64_t classes = 5003;  // several blocks, the last one broken
  Array x = random_array({3, classes}, 2).to(DType::f32);
  x.data<float>()[4999] = 40;         // the maximum in the last block
  x.data<float>()[classes + 2] = 60;  // and in the first
  for (std::int64_t i = 0; i < 2048; ++i)
    x.data<float>()[2 * classes + i] = -std::numeric_limits<float>::infinity();
  const Array targets = targets_of({3}, {7, 3000, 5001});
  const Tensor logits(x, true);
  const Tensor loss = cross_entropy(logits, targets).loss;
  const Array logs = log_softmax(Tensor(x)).value();
  const double want = -(logs.at(7) + logs.at(classes + 3000) + logs.at(2 * classes + 5001)) / 3;
  EXPECT_NEAR(loss.item(), want, 1e-5 * want);
  backward(loss);
  const Array weights = softmax(Tensor(x)).value();
  for (std::int64_t i = 0; i < 3 * classes; ++i) {
    const bool is_target = i == 7 || i == classes + 3000 || i == 2 * classes + 5001;
    EXPECT_NEAR(logits.grad().at(i), (weights.at(i) - (is_target ? 1 : 0)) / 3, 1e-6);
  }
}

TEST(CrossEntropy, SameBitsForAnyNumberOfThreads) {
  const Array start = random_array({151, 1031}, 3).to(DType::f32);
  std::vector<std::int64_t> list;
  for (std::int64_t i = 0; i < 151; ++i) list.push_back(i % 5 == 0 ? -1 : i * 7 % 1031);
  const Array targets = targets_of({151}, list);
  expect_same_bits_for_any_threads([&] {
    const Tensor x(start, true);
    const Tensor loss = cross_entropy(x, targets, {.label_smoothing = 0.1}).loss;
    backward(loss);
    return std::vector<Array>{loss.value(), x.grad()};
  });
}

// The gradient of x, whose logits somebody still looks at or not, and the most bytes that backward took.
struct Traced {
  Array gradient;
  std::int64_t peak = 0;
};
Traced through_logits(bool looked_at, bool twice_used = false) {
  const Tensor x(random_array({61, 103}, 8).to(DType::f32), true);
  Array targets({61}, DType::i64);
  for (std::int64_t i = 0; i < 61; ++i) targets.data<std::int64_t>()[i] = i % 7 == 3 ? -1 : i;
  Tensor logits = add(x, Tensor::full({}, 2));
  Tensor loss = cross_entropy(logits, targets, {.label_smoothing = 0.1}).loss;
  if (twice_used) {
    const Tensor other = sum(logits);
    loss = add(loss, other);
  }
  const Array before = logits.value().copy();
  if (!looked_at) logits = Tensor();
  pool::reset_peak();
  const std::int64_t start = pool::counters().live_bytes;
  backward(loss);
  if (looked_at) {
    EXPECT_TRUE(same_bits(logits.value(), before));
  }
  return {x.grad(), pool::counters().peak_bytes - start};
}
TEST(CrossEntropy, TheGradientTakesThePlaceOfLogitsThatNobodyLooksAt) {
  for (const bool twice_used : {false, true}) {
    const Traced seen = through_logits(true, twice_used);
    const Traced unseen = through_logits(false, twice_used);
    EXPECT_TRUE(same_bits(seen.gradient, unseen.gradient));
    if (twice_used) continue;
    constexpr std::int64_t bytes = 61 * 103 * 4;
    EXPECT_GE(seen.peak, bytes);
    EXPECT_LT(unseen.peak, bytes / 2);
  }
}

TEST(CrossEntropy, AGraphThatIsKeptKeepsItsLogits) {
  const Tensor x(random_array({5, 7}, 9), true);
  Tensor logits = mul(x, Tensor::full({}, 2, DType::f64));
  const Tensor loss = cross_entropy(logits, targets_of({5}, {0, 6, 2, 1, 3})).loss;
  logits = Tensor();
  backward(loss, {.keep_graph = true});
  const Array once = x.grad().copy();
  for (const bool keep : {true, false}) {
    Tensor leaf = x;
    leaf.clear_grad();
    backward(loss, {.keep_graph = keep});
    EXPECT_TRUE(same_bits(x.grad(), once));
  }
}

TEST(Mse, AgreesWithTheGoldensAndGradients) {
  expect_golden("mse", [](In in) { return mse(in[0], in[1]); });
  for (const Shape& shape : {Shape{}, Shape{0}, Shape{1}, Shape{3, 7}}) {
    const Tensor x(random_array(shape, 4), true);
    const Tensor target(random_array(shape, 5), true);
    EXPECT_TRUE(gradcheck([](In in) { return mse(in[0], in[1]); }, {x, target}));
  }
  const Tensor x(random_array({5}, 6), true);
  const Tensor zero = mse(x, x);
  backward(zero);
  EXPECT_EQ(numbers(x.grad()), std::vector<double>(5, 0));
  EXPECT_EQ(mse(Tensor::zeros({0}), Tensor::zeros({0})).item(), 0);
  EXPECT_EQ(error_of([] {
              mse(Tensor::zeros({2}), Tensor::zeros({1, 2}));
            }),
            "mse: x of shape [2] and target of shape [1, 2]");
}

TEST(Mse, SameBitsForAnyNumberOfThreads) {
  const Array start = random_array({400'009}, 7).to(DType::f32);
  expect_same_bits_for_any_threads([&] {
    const Tensor x(start, true);
    const Tensor loss = mse(x, Tensor::full({400'009}, 0.5));
    backward(loss);
    return std::vector<Array>{loss.value(), x.grad()};
  });
}

}  // namespace
}  // namespace headlab
