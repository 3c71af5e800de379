#include <cmath>
#include <limits>
#include <memory>

#include "framework/ops/linear.h"
#include "framework/optim/adamw.h"
#include "framework/optim/sgd.h"
#include "tests/optim/parameters.h"
#include "tests/support/ops.h"

namespace headlab {
namespace {

std::unique_ptr<Optimiser> optimiser_of(const nlohmann::json& options, ParameterBuffer& buffer) {
  if (options.contains("betas")) {
    return std::make_unique<AdamW>(buffer, AdamWOptions{.beta1 = options["betas"][0],
                                                        .beta2 = options["betas"][1],
                                                        .eps = options["eps"],
                                                        .weight_decay = options.value("decay_w", 0.0)});
  }
  return std::make_unique<Sgd>(
      buffer, SgdOptions{.momentum = options["momentum"], .nesterov = options.value("nesterov", false)});
}

TEST(Optimisers, AgreeWithTheGoldens) {
  const Golden golden("optim");
  for (const std::string name : {"adamw", "adam", "sgd_momentum", "sgd_nesterov"}) {
    for (const DType dtype : {DType::f64, DType::f32}) {
      const auto& options = golden.find_case(name);
      const Tensor w(golden(name + ".w0", dtype), true);
      const Tensor b(golden(name + ".b0", dtype), true);
      ParameterBuffer buffer({{"w", w, true}, {"b", b, false}});
      const auto optimiser = optimiser_of(options, buffer);
      for (std::int64_t i = 0; i < options["steps"].get<std::int64_t>(); ++i) {
        const auto row = [&](const std::string& array, const Shape& shape) {
          return golden(name + "." + array, dtype).range(i, i + 1).reshape(shape);
        };
        buffer.clear_gradients();
        give_gradient(w, row("grads_w", {5, 3}));
        give_gradient(b, row("grads_b", {3}));
        optimiser->step(options["lr"]);
        const double tolerance = dtype == DType::f64 ? 1e-10 : 1e-5;
        expect_close(w.value(), row("w", {5, 3}), tolerance, name + ".w");
        expect_close(b.value(), row("b", {3}), tolerance, name + ".b");
      }
    }
  }
}

// One parameter 1.0, the given gradients, one step each.
double adam(const std::vector<double>& gradients, double eps) {
  const OptimisedParameter w = parameter_of<float>("w", {1});
  ParameterBuffer buffer({w});
  AdamW optimiser(buffer, {.eps = eps, .weight_decay = 0});
  for (const double g : gradients) {
    buffer.clear_gradients();
    give_gradient(w.tensor, Array::full({1}, g));
    optimiser.step(0.1);
  }
  return w.tensor.value().at(0);
}

TEST(AdamW, WorkedExamples) {
  EXPECT_NEAR(adam({0.01}, 0.01), 0.95, 1e-6);
  EXPECT_NEAR(adam({0.01, -0.02, 0.03}, 0.01), 0.948963, 1e-6);
  EXPECT_NEAR(adam({123}, 1e-8), 0.9, 1e-6);
  EXPECT_EQ(adam({0, 0, 0}, 1e-8), 1);
}

TEST(AdamW, DecaysMatricesAndTiedWeightsOnce) {
  const OptimisedParameter matrix = parameter_of<float>("matrix", {2});
  const OptimisedParameter bias = parameter_of<float>("bias", {2}, false);
  const OptimisedParameter gain = parameter_of<float>("gain", {1}, false);
  const OptimisedParameter embedding = parameter_of<float>("embedding", {2});
  ParameterBuffer buffer({matrix, bias, gain, embedding, {"head", embedding.tensor, true}});
  EXPECT_EQ(buffer.decayed(), (std::vector<std::string>{"matrix", "embedding"}));
  AdamW optimiser(buffer, {.weight_decay = 0.1});
  for (const OptimisedParameter& p : {matrix, bias, gain, embedding, embedding})
    give_gradient(p.tensor, Array::zeros({1}));
  optimiser.step(0.1);
  EXPECT_NEAR(matrix.tensor.value().at(0), 1.98, 1e-6);
  EXPECT_EQ(bias.tensor.value().at(0), 2);
  EXPECT_EQ(gain.tensor.value().at(0), 1);
  EXPECT_NEAR(embedding.tensor.value().at(0), 1.98, 1e-6);
}

TEST(Optimisers, AParameterWithoutAGradientIsNotTouched) {
  for (const bool sgd : {false, true}) {
    const OptimisedParameter a = parameter_of<float>("a", {1, 2});
    const OptimisedParameter b = parameter_of<float>("b", {3, 4});
    ParameterBuffer buffer({a, b});
    std::unique_ptr<Optimiser> optimiser;
    if (sgd) {
      optimiser = std::make_unique<Sgd>(buffer, SgdOptions{.momentum = 0.9, .weight_decay = 0.1});
    } else {
      optimiser = std::make_unique<AdamW>(buffer, AdamWOptions{.weight_decay = 0.1});
    }
    give_gradient(a.tensor, Array::full({2}, 1));
    give_gradient(b.tensor, Array::full({2}, 1));
    optimiser->step(0.1);
    const Array value = b.tensor.value().copy();
    const auto before = optimiser->state();
    buffer.clear_gradients();
    give_gradient(a.tensor, Array::full({2}, 1));
    optimiser->step(0.1);
    EXPECT_TRUE(same_bits(b.tensor.value(), value));
    EXPECT_EQ(optimiser->steps("a"), 2);
    EXPECT_EQ(optimiser->steps("b"), 1);
    const auto after = optimiser->state();
    for (const auto& entry : before) {
      const bool of_b = entry.first.back() == 'b';
      EXPECT_EQ(static_cast<bool>(same_bits(entry.second, after.at(entry.first))), of_b) << entry.first;
    }
  }
}

TEST(Optimisers, AStepBetweenForwardAndBackwardIsAnError) {
  const Tensor weight(random_array({3, 5}, 1), true);
  const Tensor x(random_array({2, 5}, 2), true);
  ParameterBuffer buffer({{"weight", weight, true}});
  Sgd optimiser(buffer);
  const Array seed = Array::full({2, 3}, 1, DType::f64);
  const Tensor first = linear(x, weight);
  backward(first, {.seed = seed});
  const Tensor late = linear(x, weight);
  optimiser.step(0.1);
  EXPECT_EQ(error_of([&] { backward(late, {.seed = seed}); }),
            "linear: an input of shape [3, 5] was changed in place after it was used; its gradient would be "
            "wrong");
}

TEST(Optimisers, StateGoesOutAndIn) {
  const auto run = [](bool interrupted) {
    const OptimisedParameter a = parameter_of<float>("a", {1, 2, 3});
    const OptimisedParameter b = parameter_of<float>("b", {4});
    ParameterBuffer buffer({a, b});
    auto optimiser = std::make_unique<AdamW>(buffer);
    for (int i = 0; i < 6; ++i) {
      if (interrupted && i == 3) {
        const auto state = optimiser->state();
        optimiser = std::make_unique<AdamW>(buffer);
        optimiser->load_state(state);
      }
      buffer.clear_gradients();
      give_gradient(a.tensor, Array::of<float>({3}, {0.1F, -0.2F, static_cast<float>(i)}));
      if (i % 2 == 0) give_gradient(b.tensor, Array::full({1}, 0.3));
      optimiser->step(0.01);
    }
    return buffer.values().copy();
  };
  EXPECT_TRUE(same_bits(run(false), run(true)));
}

TEST(Optimisers, RefuseAStateThatDoesNotFit) {
  const OptimisedParameter a = parameter_of<float>("a", {1, 2, 3});
  ParameterBuffer buffer({a});
  AdamW optimiser(buffer);
  give_gradient(a.tensor, Array::full({3}, 1));
  optimiser.step(0.1);
  const auto good = optimiser.state();
  EXPECT_EQ(good.size(), 3U);
  auto state = good;
  state.erase("adamw.v.a");
  EXPECT_EQ(error_of([&] { optimiser.load_state(state); }), "adamw: the state has no 'adamw.v.a'");
  state = good;
  state["adamw.m.a"] = Array::zeros({2});
  EXPECT_EQ(error_of([&] { optimiser.load_state(state); }),
            "adamw: 'adamw.m.a' of the state is [2] of f32, it needs to be [3] of f32");
  state = good;
  state["adamw.m.b"] = Array::zeros({2});
  EXPECT_EQ(error_of([&] { optimiser.load_state(state); }),
            "adamw: the state has 'adamw.m.b', which belongs to no parameter");
  for (const auto& entry : optimiser.state()) EXPECT_TRUE(same_bits(entry.second, good.at(entry.first)));
}

TEST(Optimisers, ErrorsNameTheOption) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  ParameterBuffer buffer({parameter_of<float>("a", {1})});
  const auto adamw = [&](AdamWOptions options) {
    return error_of([&] { const AdamW made(buffer, options); });
  };
  const auto sgd = [&](SgdOptions options) { return error_of([&] { const Sgd made(buffer, options); }); };
  EXPECT_EQ(adamw({.beta1 = 1}), "adamw: beta1 1 is not in [0, 1)");
  EXPECT_EQ(adamw({.beta2 = nan}), "adamw: beta2 nan is not in [0, 1)");
  EXPECT_EQ(adamw({.eps = -1}), "adamw: eps -1 is not a finite number over 0");
  EXPECT_EQ(adamw({.weight_decay = -1}), "adamw: weight_decay -1 is not a finite number of at least 0");
  EXPECT_EQ(sgd({.momentum = -0.5}), "sgd: momentum -0.5 is not in [0, 1)");
  EXPECT_EQ(sgd({.nesterov = true}), "sgd: nesterov needs a momentum over 0");
  EXPECT_EQ(sgd({.weight_decay = nan}), "sgd: weight_decay nan is not a finite number of at least 0");
  AdamW optimiser(buffer);
  EXPECT_EQ(error_of([&] { optimiser.step(nan); }), "adamw: lr nan is not a finite number of at least 0");
  EXPECT_EQ(error_of([&] { optimiser.step(-1); }), "adamw: lr -1 is not a finite number of at least 0");
  EXPECT_EQ(error_of([&] { optimiser.steps("b"); }), "adamw: there is no parameter 'b'");
}

TEST(Optimisers, SameBitsForAnyNumberOfThreads) {
  const Array start = random_array({100'003}, 1).to(DType::f32);
  const Array gradient = random_array({100'003}, 2).to(DType::f32);
  for (const bool sgd : {false, true}) {
    expect_same_bits_for_any_threads([&] {
      const Tensor w(start, true);
      ParameterBuffer buffer({{"w", w, true}, parameter_of<float>("b", {1, 2})});
      give_gradient(w, gradient);
      if (sgd) {
        Sgd(buffer, {.momentum = 0.9}).step(0.1);
      } else {
        AdamW(buffer).step(0.1);
      }
      return std::vector<Array>{buffer.values()};
    });
  }
}

}  // namespace
}  // namespace headlab
