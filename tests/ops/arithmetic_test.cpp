#include "framework/ops/arithmetic.h"

#include <functional>

#include "framework/autograd/gradcheck.h"
#include "framework/ops/operators.h"
#include "tests/support/ops.h"

namespace headlab {
namespace {

using Binary = std::function<Tensor(const Tensor&, const Tensor&)>;
const std::vector<std::pair<std::string, Binary>>& binaries() {
  static const std::vector<std::pair<std::string, Binary>> all{
      {"add", [](const Tensor& a, const Tensor& b) { return a + b; }},
      {"sub", [](const Tensor& a, const Tensor& b) { return a - b; }},
      {"mul", [](const Tensor& a, const Tensor& b) { return a * b; }},
      {"div", [](const Tensor& a, const Tensor& b) { return a / b; }}};
  return all;
}

Array ones(const Shape& shape, DType dtype = DType::f64) { return Array::full(shape, 1, dtype); }

// Gradients of the sum of a + b for operands of ones.
std::pair<Array, Array> gradients_of_sum(const Shape& a, const Shape& b) {
  const Tensor x(ones(a), true);
  const Tensor y(ones(b), true);
  const Tensor z = x + y;
  backward(z, {.seed = ones(z.shape())});
  return {x.grad(), y.grad()};
}

TEST(Arithmetic, BroadcastGradientsHaveTheOperandsShape) {
  const auto row = gradients_of_sum({2, 3}, {1, 3}).second;
  EXPECT_EQ(row.shape(), (Shape{1, 3}));
  EXPECT_EQ(numbers(row), (std::vector<double>{2, 2, 2}));
  const auto vector = gradients_of_sum({2, 3}, {3}).second;
  EXPECT_EQ(vector.shape(), (Shape{3}));
  EXPECT_EQ(numbers(vector), (std::vector<double>{2, 2, 2}));
  const auto scalar = gradients_of_sum({2, 3}, {}).second;
  EXPECT_EQ(scalar.shape(), Shape{});
  EXPECT_EQ(scalar.item(), 6);
  const auto [column, line] = gradients_of_sum({2, 1}, {1, 3});
  EXPECT_EQ(numbers(column), (std::vector<double>{3, 3}));
  EXPECT_EQ(numbers(line), (std::vector<double>{2, 2, 2}));
  EXPECT_EQ(column.shape(), (Shape{2, 1}));
}

TEST(Arithmetic, OuterProductGradients) {
  const Tensor a = Tensor::of<double>({4, 1}, {1, 2, 3, 4}, true);
  const Tensor b = Tensor::of<double>({1, 4}, {1, 1, 1, 1}, true);
  const Tensor y = a * b;
  backward(y, {.seed = ones({4, 4})});
  EXPECT_EQ(numbers(a.grad()), (std::vector<double>{4, 4, 4, 4}));
  EXPECT_EQ(numbers(b.grad()), (std::vector<double>{10, 10, 10, 10}));
}

TEST(Arithmetic, ErrorsNameShapesAndTypes) {
  EXPECT_EQ(error_of([] {
              add(Tensor::zeros({2, 3}), Tensor::zeros({2}));
            }),
            "add: shapes [2, 3] and [2] do not broadcast");
  EXPECT_EQ(error_of([] {
              mul(Tensor::zeros({2, 3}), Tensor::zeros({3}, DType::f64));
            }),
            "mul: operands differ in type: f32 of shape [2, 3] and f64 of shape [3]");
  EXPECT_EQ(error_of([] { div(Tensor::zeros({2}, DType::i64), 2); }), "div: needs f32 or f64, not i64");
}

TEST(Arithmetic, GradientsAgreeWithDifferences) {
  const std::vector<std::pair<Shape, Shape>> shapes{{{}, {}},
                                                    {{3, 5}, {3, 5}},
                                                    {{3, 5}, {5}},
                                                    {{5}, {3, 5}},
                                                    {{3, 5}, {}},
                                                    {{3, 1}, {1, 5}},
                                                    {{2, 1, 5}, {3, 1}},
                                                    {{2, 3, 5}, {3, 1}},
                                                    {{2, 3, 5}, {2, 1, 5}},
                                                    {{1}, {1, 1}},
                                                    {{0, 3}, {3}},
                                                    {{2, 3, 1, 5}, {3, 1, 1}},
                                                    {{2, 1, 3, 1}, {5, 1, 7}},
                                                    {{3, 0}, {1}}};
  for (const auto& [name, f] : binaries()) {
    for (const auto& [a, b] : shapes) {
      const auto run = [&g = f](std::span<const Tensor> in) { return g(in[0], in[1]); };
      const GradcheckResult result = gradcheck(
          run, {Tensor(random_array(a, 1), true), Tensor(away_from_zero(random_array(b, 2)), true)});
      EXPECT_TRUE(result) << name << a.str() << b.str() << result.message;
    }
    const auto twice = [&g = f](std::span<const Tensor> in) { return g(in[0], in[0]); };
    const GradcheckResult result = gradcheck(twice, {Tensor(away_from_zero(random_array({3, 5}, 3)), true)});
    EXPECT_TRUE(result) << name << "(x, x)" << result.message;
  }
}

TEST(Arithmetic, OnlyOneOperandMayNeedAGradient) {
  for (const auto& [name, f] : binaries()) {
    const auto run = [&g = f](std::span<const Tensor> in) { return g(in[0], in[1]); };
    for (const bool first : {true, false}) {
      const GradcheckResult result = gradcheck(run, {Tensor(random_array({2, 3}, 1), first),
                                                     Tensor(away_from_zero(random_array({3}, 2)), !first)});
      EXPECT_TRUE(result) << name << result.message;
    }
  }
}

TEST(Arithmetic, NumbersOnEitherSide) {
  const std::vector<std::pair<std::string, std::function<Tensor(const Tensor&)>>> forms{
      {"x+2", [](const Tensor& x) { return x + 2; }},     {"2+x", [](const Tensor& x) { return 2 + x; }},
      {"x-2", [](const Tensor& x) { return x - 2; }},     {"2-x", [](const Tensor& x) { return 2 - x; }},
      {"x*2.5", [](const Tensor& x) { return x * 2.5; }}, {"2.5*x", [](const Tensor& x) { return 2.5 * x; }},
      {"x/3", [](const Tensor& x) { return x / 3; }},     {"3/x", [](const Tensor& x) { return 3 / x; }},
      {"-x", [](const Tensor& x) { return -x; }}};
  const std::vector<double> wanted{6, 6, 2, -2, 10, 10, 4.0 / 3, 0.75, -4};
  for (std::size_t i = 0; i < forms.size(); ++i) {
    const auto& f = forms[i].second;
    EXPECT_EQ(f(Tensor::scalar(4, DType::f64)).item(), wanted[i]) << forms[i].first;
    EXPECT_EQ(f(Tensor::scalar(4)).item(), static_cast<double>(static_cast<float>(wanted[i])));
    EXPECT_EQ(f(Tensor::zeros({0, 3})).shape(), (Shape{0, 3}));
    const GradcheckResult result = gradcheck([&](std::span<const Tensor> in) { return f(in[0]); },
                                             {Tensor(away_from_zero(random_array({3, 5}, 5)), true)});
    EXPECT_TRUE(result) << forms[i].first << result.message;
  }
}

TEST(Arithmetic, DivisionKeepsInfinityAndNaN) {
  const Tensor y = div(Tensor::of<float>({3}, {1, -1, 0}), 0);
  EXPECT_EQ(y.value().at(0), HUGE_VAL);
  EXPECT_EQ(y.value().at(1), -HUGE_VAL);
  EXPECT_TRUE(std::isnan(y.value().at(2)));
}

TEST(Arithmetic, ChangedOperandIsAnError) {
  Tensor a = Tensor::scalar(3, DType::f64, true);
  const Tensor y = a * a;
  a.change().fill(4);
  EXPECT_EQ(error_of([&] { backward(y); }).substr(0, 4), "mul:");
}

TEST(Arithmetic, SameBitsForAnyNumberOfThreads) {
  const std::vector<std::pair<Shape, Shape>> shapes{{{307, 401}, {307, 401}}, {{307, 401}, {401}},
                                                    {{401, 307}, {401, 1}},   {{11, 1, 401}, {31, 1}},
                                                    {{307, 401}, {}},         {{70'001, 2}, {2}}};
  for (const auto& [a, b] : shapes) {
    const auto run = [&, s = a, t = b] {
      const Tensor x(random_array(s, 1).to(DType::f32), true);
      const Tensor y(away_from_zero(random_array(t, 2)).to(DType::f32), true);
      const Tensor p = x * y;
      const Tensor z = p / y;
      const Tensor w = z - y;
      backward(w, {.seed = random_array(w.shape(), 3).to(DType::f32)});
      return std::vector<Array>{w.value(), x.grad(), y.grad()};
    };
    expect_same_bits_for_any_threads(run);
  }
}

TEST(Arithmetic, AgreesWithReferenceValues) {
  expect_golden("add_broadcast", [](std::span<const Tensor> in) { return add(in[0], in[1]); });
  expect_golden("mul_broadcast", [](std::span<const Tensor> in) { return mul(in[0], in[1]); });
  expect_golden("div_broadcast", [](std::span<const Tensor> in) { return div(in[0], in[1]); });
}

}  // namespace
}  // namespace headlab
