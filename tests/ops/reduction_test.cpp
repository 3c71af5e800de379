#include "framework/ops/reduction.h"

#include <limits>

#include "framework/autograd/gradcheck.h"
#include "framework/core/pool.h"
#include "framework/ops/arithmetic.h"
#include "tests/support/ops.h"

namespace headlab {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
using Op = Tensor (*)(const Tensor&, const AxisList&, bool);
using Whole = Tensor (*)(const Tensor&);
struct Case {
  std::string name;
  Op op;
  Whole whole;
};
const std::vector<Case> cases{{"sum", sum, sum}, {"mean", mean, mean}, {"max", max, max}};
const std::vector<std::vector<int>> axis_sets{
    {0}, {1}, {2}, {3}, {0, 1}, {1, 2}, {0, 2}, {3, 1}, {-1, 0}, {0, 3}, {0, 2, 3}, {1, 2, 3}, {0, 1, 2, 3}};

// Where element i of `shape` goes when `axes` are reduced.
struct Target {
  Target(const Shape& shape, const std::vector<int>& axes) : full(shape), kept(shape) {
    for (const int axis : axes) kept = kept.with(axis, 1);
  }
  std::int64_t operator()(std::int64_t i) const {
    std::int64_t at = 0;
    std::int64_t step = 1;
    for (int k = full.rank() - 1; k >= 0; --k) {
      at += (kept[k] == 1 ? 0 : i % full[k]) * step;
      i /= full[k];
      step *= kept[k];
    }
    return at;
  }
  Shape full, kept;
};

TEST(Reduction, MeanOverTwoAxesRestoresTheShape) {
  const Tensor x(Array::full({2, 3, 4}, 1, DType::f64), true);
  const Tensor y = mean(x, {1, 2});
  EXPECT_EQ(y.shape(), (Shape{2}));
  backward(y, {.seed = Array::full({2}, 1, DType::f64)});
  EXPECT_EQ(numbers(x.grad()), std::vector<double>(24, 1.0 / 12));
  EXPECT_EQ(x.grad().shape(), (Shape{2, 3, 4}));
}

TEST(Reduction, ShapesWithAndWithoutTheAxes) {
  const Tensor x(random_array({2, 3, 5, 7}, 1));
  for (const Case& c : cases) {
    EXPECT_EQ(c.op(x, {0, 2}, false).shape(), (Shape{3, 7})) << c.name;
    EXPECT_EQ(c.op(x, {0, 2}, true).shape(), (Shape{1, 3, 1, 7})) << c.name;
    EXPECT_EQ(c.op(x, -1, false).shape(), (Shape{2, 3, 5})) << c.name;
    EXPECT_EQ(c.whole(x).shape(), Shape{}) << c.name;
    EXPECT_EQ(numbers(c.op(x, std::vector<int>{}, false).value()), numbers(x.value())) << c.name;
  }
}

TEST(Reduction, AgreesWithPlainLoops) {
  const Shape shape{2, 3, 5, 7};
  const Array x = random_array(shape, 1);
  for (const auto& axes : axis_sets) {
    const Target target(shape, axes);
    std::vector<double> total(static_cast<std::size_t>(target.kept.size()), 0);
    std::vector<double> most(total.size(), -HUGE_VAL);
    for (std::int64_t i = 0; i < x.size(); ++i) {
      const auto k = static_cast<std::size_t>(target(i));
      total[k] += x.at(i);
      most[k] = std::max(most[k], x.at(i));
    }
    const double n = static_cast<double>(x.size() / target.kept.size());
    std::vector<double> average = total;
    for (double& v : average) v /= n;
    expect_close(sum(Tensor(x), axes, true).value(), Array::of<double>(target.kept, total), 1e-13, "sum");
    expect_close(mean(Tensor(x), axes, true).value(), Array::of<double>(target.kept, average), 1e-13, "mean");
    expect_close(max(Tensor(x), axes, true).value(), Array::of<double>(target.kept, most), 0, "max");
  }
}

TEST(Reduction, GradientsAgreeWithDifferences) {
  for (const Case& c : cases) {
    for (const auto& axes : axis_sets) {
      for (const bool keep : {false, true}) {
        const auto run = [&](std::span<const Tensor> in) { return c.op(in[0], axes, keep); };
        const GradcheckResult result = gradcheck(run, {Tensor(random_array({2, 3, 5, 7}, 1), true)});
        EXPECT_TRUE(result) << c.name << axes.size() << result.message;
      }
    }
    const auto whole_twice = [&](std::span<const Tensor> in) {
      const Tensor a = c.whole(in[0]);
      const Tensor b = c.op(in[0], 1, true);
      const Tensor p = mul(a, b);
      return mul(p, in[0]);
    };
    for (const Shape& shape : {Shape{3, 5}, Shape{1, 1}, Shape{1, 7}, Shape{7, 1}}) {
      const GradcheckResult result = gradcheck(whole_twice, {Tensor(random_array(shape, 2), true)});
      EXPECT_TRUE(result) << c.name << shape.str() << result.message;
    }
    const GradcheckResult scalar = gradcheck([&](std::span<const Tensor> in) { return c.whole(in[0]); },
                                             {Tensor(random_array({}, 2), true)});
    EXPECT_TRUE(scalar) << c.name << scalar.message;
  }
}

TEST(Reduction, EmptyInputs) {
  const Tensor none = Tensor::zeros({0, 3}, DType::f64).set_requires_grad(true);
  const Tensor total = sum(none, 0);
  EXPECT_EQ(numbers(total.value()), (std::vector<double>{0, 0, 0}));
  backward(total, {.seed = Array::full({3}, 1, DType::f64)});
  EXPECT_EQ(none.grad().shape(), (Shape{0, 3}));
  EXPECT_EQ(sum(none).item(), 0);
  EXPECT_EQ(sum(none, 1).shape(), (Shape{0}));
  EXPECT_EQ(max(none, 1).shape(), (Shape{0}));
  EXPECT_TRUE(std::isnan(mean(none).item()));
  EXPECT_EQ(error_of([&] { max(none, 0); }), "max: nothing to take the maximum of in shape [0, 3]");
}

TEST(Reduction, ErrorsNameAxisAndShape) {
  const Tensor x = Tensor::zeros({2, 5, 7});
  EXPECT_EQ(error_of([&] { sum(x, 3); }), "sum: axis 3 is out of range for shape [2, 5, 7]");
  EXPECT_EQ(error_of([&] { mean(x, {0, -3}); }), "mean: axis -3 is named twice for shape [2, 5, 7]");
  EXPECT_EQ(error_of([&] { max(Tensor::zeros({2}, DType::u8)); }), "max: needs f32 or f64, not u8");
}

TEST(Reduction, FirstOfEqualMaximaTakesTheGradient) {
  for (const DType dtype : {DType::f32, DType::f64}) {
    const Tensor x(Array::of<double>({2, 3}, {5, 7, 7, 7, 1, 7}).to(dtype), true);
    const Tensor y = max(x, 1);
    backward(y, {.seed = Array::of<double>({2}, {2, 3}).to(dtype)});
    EXPECT_EQ(numbers(x.grad()), (std::vector<double>{0, 2, 0, 3, 0, 0}));
    Tensor z(x.value().copy(), true);
    backward(max(z, 0), {.seed = Array::of<double>({3}, {2, 3, 5}).to(dtype)});
    EXPECT_EQ(numbers(z.grad()), (std::vector<double>{0, 3, 5, 2, 0, 0}));
    Tensor w(x.value().copy(), true);
    backward(max(w));
    EXPECT_EQ(numbers(w.grad()), (std::vector<double>{0, 1, 0, 0, 0, 0}));
  }
}

TEST(Reduction, MaximumKeepsNaNInEitherOrder) {
  const Tensor x = Tensor::of<double>({2, 3}, {1, nan, 3, 3, 1, 2});
  EXPECT_TRUE(std::isnan(max(x, 1).value().at(0)));
  EXPECT_EQ(max(x, 1).value().at(1), 3);
  EXPECT_TRUE(std::isnan(max(x, 0).value().at(1)));
  EXPECT_EQ(max(x, 0).value().at(2), 3);
  Array long_row = random_array({50'021}, 1);
  long_row.values<double>()[40'000] = nan;
  EXPECT_TRUE(std::isnan(max(Tensor(long_row)).item()));
}

TEST(Reduction, LongF32SumsAreAccurate) {
  constexpr std::int64_t n = 3'000'017;
  const Tensor tenths = Tensor::full({n}, 0.1);
  const double want = static_cast<double>(0.1F) * static_cast<double>(n);
  EXPECT_NEAR(sum(tenths).item(), want, want * 6e-8);
  const Tensor columns(tenths.value().range(0, n / 7 * 7).reshape({-1, 7}));
  const double column = static_cast<double>(0.1F) * static_cast<double>(n / 7);
  for (const double v : numbers(sum(columns, 0).value())) EXPECT_NEAR(v, column, column * 6e-8);
  EXPECT_NEAR(mean(tenths).item(), static_cast<double>(0.1F), 1e-8);
}

TEST(Reduction, SameBitsForAnyNumberOfThreads) {
  struct Big {
    Shape shape;
    std::vector<int> axes;
  };
  const std::vector<Big> sizes{{{307, 1009}, {1}},  {{307, 1009}, {0}}, {{300'007}, {0}},
                               {{3, 100'003}, {1}}, {{5003, 61}, {0}},  {{31, 11, 7, 131}, {0, 2}},
                               {{70'001, 5}, {0}},  {{100'003, 3}, {1}}};
  for (const Case& c : cases) {
    for (const Big& big : sizes) {
      const Array x = random_array(big.shape, 1).to(DType::f32);
      const auto run = [&] {
        const Tensor in(x.copy(), true);
        const Tensor y = c.op(in, big.axes, false);
        backward(y, {.seed = random_array(y.shape(), 2).to(DType::f32)});
        return std::vector<Array>{y.value(), in.grad()};
      };
      expect_same_bits_for_any_threads(run);
    }
  }
}

TEST(Reduction, MemoryReturns) {
  const auto nodes = graph_counters().nodes;
  const auto bytes = pool::counters().live_bytes;
  for (const Case& c : cases) {
    const Tensor x(random_array({5, 7}, 1), true);
    const Tensor dropped = c.op(x, 0, false);
    const Tensor y = c.whole(x);
    backward(y);
  }
  EXPECT_EQ(graph_counters().nodes, nodes);
  EXPECT_EQ(pool::counters().live_bytes, bytes);
}

TEST(Reduction, AgreesWithReferenceValues) {
  expect_golden("sum_axes", [](std::span<const Tensor> in) { return sum(in[0], {0, 2}); });
  expect_golden("mean_keep", [](std::span<const Tensor> in) { return mean(in[0], 1, true); });
  expect_golden("max_axis", [](std::span<const Tensor> in) { return max(in[0], 1); });
}

}  // namespace
}  // namespace headlab
