#include "framework/ops/elementwise.h"

#include <limits>

#include "framework/autograd/gradcheck.h"
#include "framework/core/pool.h"
#include "framework/ops/arithmetic.h"
#include "tests/support/ops.h"

namespace headlab {
namespace {

struct Case {
  std::string name;
  Tensor (*op)(const Tensor&);
  bool positive = false;  // defined for x > 0 only
};
const std::vector<Case> cases{
    {"exp", exp},   {"log", log, true},        {"sqrt", sqrt, true}, {"relu", relu},
    {"silu", silu}, {"sigmoid", sigmoid},      {"tanh", tanh},       {"softplus", softplus},
    {"gelu", gelu}, {"gelu_exact", gelu_exact}};

Array argument(const Case& c, const Shape& shape) {
  Array x = away_from_zero(random_array(shape, 17));
  if (c.positive) {
    for (double& v : x.values<double>()) v = std::abs(v);
  }
  return x;
}

// The reference in long double, straight from the definition where that is safe.
long double exact(const std::string& name, long double x) {
  if (name == "exp") return std::exp(x);
  if (name == "log") return std::log(x);
  if (name == "sqrt") return std::sqrt(x);
  if (name == "relu") return std::max(x, 0.0L);
  if (name == "sigmoid") return 1 / (1 + std::exp(-x));
  if (name == "silu") return x / (1 + std::exp(-x));
  if (name == "tanh") return std::tanh(x);
  if (name == "softplus") return std::log1p(std::exp(x));
  if (name == "gelu") {
    const long double u = std::sqrt(2 / std::acos(-1.0L)) * (x + 0.044715L * x * x * x);
    return x / 2 * (1 + std::tanh(u));
  }
  return x / 2 * std::erfc(-x / std::sqrt(2.0L));
}

TEST(Elementwise, AgreesWithTheDefinition) {
  for (const Case& c : cases) {
    for (const DType dtype : {DType::f64, DType::f32}) {
      for (double x = -11.37; x < 11.5; x += 0.173) {
        if (c.positive && x <= 0) continue;
        const Tensor in = Tensor::scalar(x, dtype);
        const double want = static_cast<double>(exact(c.name, static_cast<long double>(in.item())));
        const double tolerance = (dtype == DType::f64 ? 1e-15 : 4e-7) * std::max(1.0, std::abs(want));
        EXPECT_NEAR(c.op(in).item(), want, tolerance) << c.name << "(" << x << ") " << name_of(dtype);
      }
    }
  }
}

TEST(Elementwise, GradientsAgreeWithDifferences) {
  for (const Case& c : cases) {
    const auto run = [&](std::span<const Tensor> in) { return c.op(in[0]); };
    for (const Shape& shape : {Shape{}, Shape{1}, Shape{3, 37}, Shape{0}, Shape{3, 0}}) {
      const GradcheckResult result = gradcheck(run, {Tensor(argument(c, shape), true)});
      EXPECT_TRUE(result) << c.name << shape.str() << result.message;
    }
    const auto twice = [&](std::span<const Tensor> in) {
      const Tensor a = c.op(in[0]);
      const Tensor b = c.op(in[0]);
      const Tensor p = mul(a, b);
      return add(p, a);
    };
    const GradcheckResult result = gradcheck(twice, {Tensor(argument(c, {3, 37}), true)});
    EXPECT_TRUE(result) << c.name << result.message;
  }
}

TEST(Elementwise, F32GradientsAgreeWithF64) {
  for (const Case& c : cases) {
    const Tensor wide(argument(c, {3, 37}), true);
    const Tensor narrow(wide.value().to(DType::f32), true);
    const Array dy = random_array({3, 37}, 3);
    backward(c.op(wide), {.seed = dy});
    backward(c.op(narrow), {.seed = dy.to(DType::f32)});
    expect_close(narrow.grad(), wide.grad(), 1e-6, c.name);
    backward(c.op(narrow), {.seed = dy.to(DType::f32)});  // the second time is added
    const Tensor twice(wide.value().copy(), true);
    backward(c.op(twice), {.seed = dy});
    backward(c.op(twice), {.seed = dy});
    expect_close(narrow.grad(), twice.grad(), 1e-6, c.name);
  }
}

TEST(Elementwise, FiniteArgumentsNeverGiveNaN) {
  for (const Case& c : cases) {
    for (const DType dtype : {DType::f64, DType::f32}) {
      const double most = dtype == DType::f32 ? static_cast<double>(std::numeric_limits<float>::max())
                                              : std::numeric_limits<double>::max();
      for (const double x : {-most, -1e30, -1000.0, -89.0, -1e-30, 0.0, 1e-30, 89.0, 1000.0, 1e30, most}) {
        if (c.positive && x <= 0) continue;
        const Tensor in = Tensor::scalar(x, dtype, true);
        const Tensor y = c.op(in);
        EXPECT_FALSE(std::isnan(y.item())) << c.name << x;
        backward(y);
        EXPECT_FALSE(std::isnan(in.grad().item())) << c.name << "'" << x;
      }
    }
  }
}

TEST(Elementwise, NaNStaysNaN) {
  for (const Case& c : cases) {
    for (const DType dtype : {DType::f64, DType::f32}) {
      const Tensor y = c.op(Tensor(Array::full({19}, std::numeric_limits<double>::quiet_NaN(), dtype)));
      for (std::int64_t i = 0; i < 19; ++i) EXPECT_TRUE(std::isnan(y.value().at(i))) << c.name << i;
    }
  }
}

TEST(Elementwise, StableAtTheEnds) {
  for (const DType dtype : {DType::f64, DType::f32}) {
    EXPECT_EQ(softplus(Tensor::scalar(1000, dtype)).item(), 1000);
    EXPECT_EQ(softplus(Tensor::scalar(-1000, dtype)).item(), 0);
    EXPECT_EQ(sigmoid(Tensor::scalar(1000, dtype)).item(), 1);
    EXPECT_EQ(sigmoid(Tensor::scalar(-1000, dtype)).item(), 0);
    EXPECT_EQ(gelu(Tensor::scalar(1000, dtype)).item(), 1000);
    EXPECT_EQ(gelu(Tensor::scalar(-1000, dtype)).item(), 0);
    EXPECT_EQ(log(Tensor::scalar(0, dtype)).item(), -HUGE_VAL);
    EXPECT_TRUE(std::isnan(log(Tensor::scalar(-1, dtype)).item()));
    const Tensor zero = Tensor::scalar(0, dtype, true);
    backward(relu(zero));
    EXPECT_EQ(zero.grad().item(), 0);
  }
}

TEST(Elementwise, TypesOtherThanFloatingAreRefused) {
  for (const Case& c : cases) {
    EXPECT_EQ(error_of([&] { c.op(Tensor::zeros({2}, DType::i64)); }),
              c.name + ": needs f32 or f64, not i64");
  }
}

TEST(Elementwise, ChangedOutputOrArgumentIsAnError) {
  for (const Case& c : cases) {
    Tensor x = Tensor::scalar(2, DType::f64, true);
    Tensor y = c.op(x);
    const bool keeps_output =
        c.name == "exp" || c.name == "sqrt" || c.name == "relu" || c.name == "sigmoid" || c.name == "tanh";
    (keeps_output ? y : x).change();
    EXPECT_EQ(error_of([&] { backward(y); }).substr(0, c.name.size() + 1), c.name + ":");
  }
}

TEST(Elementwise, MemoryOfKeptOutputsReturns) {
  const auto nodes = graph_counters().nodes;
  const auto tensors = graph_counters().tensors;
  const auto bytes = pool::counters().live_bytes;
  for (const Case& c : cases) {
    for (int i = 0; i < 3; ++i) {
      const Tensor x(argument(c, {5, 7}), true);
      const Tensor dropped = c.op(x);
      const Tensor y = c.op(x);
      if (i > 0) backward(y, {.seed = Array::full(y.shape(), 1, DType::f64)});
    }
    EXPECT_EQ(graph_counters().nodes, nodes) << c.name;
    EXPECT_EQ(graph_counters().tensors, tensors) << c.name;
    EXPECT_EQ(pool::counters().live_bytes, bytes) << c.name;
    const NoGrad off;
    const Tensor y = c.op(Tensor(argument(c, {5}), true));
    EXPECT_EQ(graph_counters().nodes, nodes) << c.name;
  }
}

TEST(Elementwise, SameBitsForAnyNumberOfThreads) {
  for (const Case& c : cases) {
    const auto run = [&] {
      const Tensor x(argument(c, {100'003}).to(DType::f32), true);
      const Tensor y = c.op(x);
      backward(y, {.seed = random_array(y.shape(), 3).to(DType::f32)});
      return std::vector<Array>{y.value(), x.grad()};
    };
    expect_same_bits_for_any_threads(run);
  }
}

TEST(Elementwise, AgreesWithReferenceValues) {
  for (const Case& c : cases) {
    const std::string name = c.name == "gelu" ? "gelu_tanh" : c.name;
    expect_golden(name, [&](std::span<const Tensor> in) { return c.op(in[0]); });
  }
}

}  // namespace
}  // namespace headlab
