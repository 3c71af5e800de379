#include "framework/optim/clip.h"

#include <cmath>
#include <limits>
#include <memory>

#include "framework/optim/adamw.h"
#include "framework/optim/sgd.h"
#include "tests/optim/parameters.h"
#include "tests/support/ops.h"

namespace headlab {
namespace {

struct Outcome {
  Clipping clipping;
  std::vector<double> gradient;
};
template <class T>
Outcome clip(const std::vector<T>& gradient, double limit = 1) {
  const OptimisedParameter w = parameter_of("w", std::vector<T>(gradient.size()));
  ParameterBuffer buffer({w, parameter_of<T>("without", {7})});
  buffer.gradients().fill(1e30);  // what a parameter without a gradient holds must not count
  give_gradient(w.tensor, Array::of<T>(w.tensor.shape(), gradient));
  const Clipping clipping = clip_gradients(buffer, limit);
  return {clipping, numbers(w.tensor.grad())};
}

TEST(Clip, AgreesWithTheGoldens) {
  const Golden golden("optim");
  for (const std::string name : {"clip_over", "clip_under"}) {
    for (const DType dtype : {DType::f64, DType::f32}) {
      const double tolerance = dtype == DType::f64 ? 1e-10 : 1e-5;
      std::vector<OptimisedParameter> parameters;
      for (const std::string i : {"0", "1"}) {
        const Array gradient = golden(name + ".g" + i, dtype);
        parameters.push_back({i, Tensor(Array::zeros(gradient.shape(), dtype), true), true});
      }
      ParameterBuffer buffer(parameters);
      for (const OptimisedParameter& p : parameters)
        give_gradient(p.tensor, golden(name + ".g" + p.name, dtype));
      const Clipping clipping = clip_gradients(buffer, golden.find_case(name)["limit"]);
      const double norm = golden(name + ".norm").at(0);
      EXPECT_NEAR(clipping.norm, norm, tolerance * norm);
      EXPECT_EQ(clipping.clipped, name == "clip_over");
      for (const OptimisedParameter& p : parameters) {
        expect_close(p.tensor.grad(), golden(name + ".clipped" + p.name), tolerance, name);
      }
    }
  }
}

template <class T>
void worked_examples() {
  const auto near = [](const Outcome& got, double norm, const std::vector<double>& want) {
    EXPECT_NEAR(got.clipping.norm, norm, 1e-6 * norm);
    EXPECT_TRUE(got.clipping.finite);
    for (std::size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(got.gradient[i], want[i], 1e-6);
  };
  near(clip<T>({3, 4}), 5, {0.6, 0.8});
  near(clip<T>({0, 0}), 0, {0, 0});
  near(clip<T>({static_cast<T>(1e20), static_cast<T>(1e20)}), 1.4142135e20, {0.707107, 0.707107});
  near(clip<T>({static_cast<T>(3e38), static_cast<T>(-3e38)}), 4.2426407e38, {0.707107, -0.707107});
  near(clip<T>(std::vector<T>(1009, 2)), 2 * std::sqrt(1009.0),
       std::vector<double>(1009, 1 / std::sqrt(1009.0)));
  near(clip<T>({}), 0, {});
}
TEST(Clip, WorkedExamples) {
  worked_examples<float>();
  worked_examples<double>();
  const Outcome huge = clip<double>({1e308, 1e308});
  EXPECT_NEAR(huge.clipping.norm / 1.414213562e308, 1, 1e-9);
  EXPECT_NEAR(huge.gradient[0], 0.707107, 1e-6);
  EXPECT_NEAR(clip<double>({3e-200, 4e-200}).clipping.norm / 5e-200, 1, 1e-12);
}

template <class T>
void non_finite() {
  const T inf = std::numeric_limits<T>::infinity();
  const T nan = std::numeric_limits<T>::quiet_NaN();
  for (const std::vector<T>& gradient :
       {std::vector<T>{inf, 1}, std::vector<T>{nan, 1}, std::vector<T>{1, nan}, std::vector<T>{-inf, nan}}) {
    const Outcome got = clip(gradient);
    EXPECT_FALSE(got.clipping.finite);
    EXPECT_FALSE(std::isfinite(got.clipping.norm));
    EXPECT_FALSE(got.clipping.clipped);
    for (std::size_t i = 0; i < 2; ++i) {
      EXPECT_TRUE(got.gradient[i] == static_cast<double>(gradient[i]) || std::isnan(gradient[i]));
    }
  }
}
TEST(Clip, ReportsANormThatIsNotFinite) {
  non_finite<float>();
  non_finite<double>();
}

// Two steps of an optimiser on clipped gradients: clipped on their own, or on the way into the step.
template <class T>
void expect_one_pass_to_be_two(const std::vector<T>& gradient, bool sgd) {
  const auto run = [&](bool at_once) {
    const OptimisedParameter w = parameter_of("w", std::vector<T>(gradient.size(), 1));
    ParameterBuffer buffer({w, parameter_of<T>("without", {7})});
    std::unique_ptr<Optimiser> optimiser;
    if (sgd) {
      optimiser = std::make_unique<Sgd>(buffer, SgdOptions{.momentum = 0.9, .nesterov = true});
    } else {
      optimiser = std::make_unique<AdamW>(buffer);
    }
    const Array given = Array::of<T>(w.tensor.shape(), gradient);
    for (int step = 0; step < 2; ++step) {
      buffer.clear_gradients();
      give_gradient(w.tensor, given);
      if (at_once) {
        const Array before = w.tensor.grad().copy();
        optimiser->step(0.1, clipping_of(buffer, 0.7).scale);
        EXPECT_TRUE(same_bits(w.tensor.grad(), before));
      } else {
        clip_gradients(buffer, 0.7);
        optimiser->step(0.1);
      }
    }
    std::vector<Array> results{w.tensor.value()};
    for (const auto& entry : optimiser->state()) results.push_back(entry.second);
    return results;
  };
  const std::vector<Array> apart = run(false);
  const std::vector<Array> together = run(true);
  for (std::size_t i = 0; i < apart.size(); ++i) EXPECT_TRUE(same_bits(apart[i], together[i])) << i;
}
TEST(Clip, OnTheWayIntoAStepGivesTheSameBits) {
  for (const std::int64_t size : {0, 1, 17, 16'411, 40'009}) {
    const Array random = random_array({size}, 3);
    const std::span<const double> values = random.values<double>();
    for (const bool sgd : {false, true}) {
      expect_one_pass_to_be_two(std::vector<double>(values.begin(), values.end()), sgd);
      std::vector<float> floats;
      for (const double value : values) floats.push_back(static_cast<float>(value));
      expect_one_pass_to_be_two(floats, sgd);
    }
  }
  for (const bool sgd : {false, true}) {
    expect_one_pass_to_be_two<double>({1e308, -1e308, 3}, sgd);
    expect_one_pass_to_be_two<float>({3e38F, -3e38F, 1e-44F, 1e-30F}, sgd);
    expect_one_pass_to_be_two<float>({0.1F, 0.2F}, sgd);  // under the limit
  }
}

TEST(Clip, ErrorsNameTheLimit) {
  EXPECT_EQ(error_of([] { clip<float>({1}, 0); }), "clip: the limit 0 is not over 0");
  EXPECT_EQ(error_of([] { clip<float>({1}, -1); }), "clip: the limit -1 is not over 0");
  EXPECT_EQ(error_of([] { clip<float>({1}, std::nan("")); }), "clip: the limit nan is not over 0");
  EXPECT_FALSE(clip<float>({3, 4}, std::numeric_limits<double>::infinity()).clipping.clipped);
}

TEST(Clip, SameBitsForAnyNumberOfThreads) {
  const Array gradient = random_array({300'007}, 2).to(DType::f32);
  expect_same_bits_for_any_threads([&] {
    const Tensor w(Array::zeros({300'007}), true);
    ParameterBuffer buffer({{"w", w, true}});
    give_gradient(w, gradient);
    const Clipping clipping = clip_gradients(buffer, 1);
    return std::vector<Array>{Array::full({1}, clipping.norm, DType::f64), w.grad().copy()};
  });
}

}  // namespace
}  // namespace headlab
