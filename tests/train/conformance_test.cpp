#include "framework/train/conformance.h"

#include <gtest/gtest.h>

#include "framework/autograd/node.h"
#include "framework/core/parallel.h"
#include "framework/ops/arithmetic.h"
#include "framework/train/catalogue.h"

namespace headlab {
namespace {

enum class Fault { none, gradient, parameter_gradient, single, hidden, grows, counts, threads, writes };

// y = share · x², with one thing wrong.
class Square : public Module {
 public:
  explicit Square(Fault fault) : share(this, "share", {3}, Init::ones(), Role::norm), fault_(fault) {}

  Tensor operator()(const Tensor& x) {
    ++calls_;
    if (fault_ == Fault::writes) share.tensor().change().zero();
    if (fault_ == Fault::grows) kept_.push_back(Array::zeros({5}));
    double factor = 1;
    if (fault_ == Fault::hidden) {
      if (training()) mean_ = 0.5;
      factor += mean_;
    }
    if (fault_ == Fault::counts) factor += 0.25 * calls_;
    if (fault_ == Fault::threads) factor = 1.0 / threads();
    if (fault_ == Fault::single && x.dtype() == DType::f32) factor = 1.01;
    const Tensor square = fault_ == Fault::gradient ? mul(x, x.detach()) : mul(x, x);
    const Tensor scaled =
        mul(square, fault_ == Fault::parameter_gradient ? share.tensor().detach() : share.tensor());
    return mul(scaled, factor);
  }
  Parameter share;

 private:
  Fault fault_;
  double mean_ = 0;
  int calls_ = 0;
  std::vector<Array> kept_;
};

Conformance found(Fault fault) {
  return check_conformance(
      known_layer<Square>("square", "y = share · x²", fault, {{{2, 3}}},
                          [](Square& layer, std::span<const Tensor> x) { return layer(x[0]); }));
}

// The checks that failed, and what they say.
std::string failures(const Conformance& conformance) {
  std::string text;
  for (const ConformanceCheck& check : conformance.checks) {
    if (!check.passed) text += check.name + ": " + check.detail + "\n";
  }
  return text;
}

TEST(Conformance, ARightLayerPassesEveryCheck) {
  const Conformance right = found(Fault::none);
  EXPECT_EQ(failures(right), "");
  EXPECT_TRUE(right.passed());
  std::vector<std::string> names;
  for (const ConformanceCheck& check : right.checks) names.push_back(check.name);
  EXPECT_EQ(names, (std::vector<std::string>{"gradient of input 0", "gradient of share", "f32 as f64",
                                             "repeatable", "save and load", "threads", "memory", "time"}));
  EXPECT_EQ(right.cost.parameters, 3);
  EXPECT_GT(right.cost.allocations, 0);
  EXPECT_GT(right.cost.milliseconds, 0);
}

TEST(Conformance, HeadlabsOwnLayersPassAndShareTheirLoops) {
  for (const KnownLayer& layer : built_in_layers()) {
    const Conformance own = check_conformance(layer);
    EXPECT_EQ(failures(own), "") << layer.name;
    const auto threads = std::find_if(own.checks.begin(), own.checks.end(),
                                      [](const ConformanceCheck& check) { return check.name == "threads"; });
    ASSERT_NE(threads, own.checks.end());
    EXPECT_EQ(threads->detail.find("no loop"), std::string::npos) << layer.name << ": " << threads->detail;
    EXPECT_GE(own.cost.flops, 0) << layer.name;
  }
}

TEST(Conformance, AWrongGradientIsNamed) {
  const std::string input = failures(found(Fault::gradient));
  EXPECT_TRUE(input.starts_with("gradient of input 0: input 0 of shape [2, 3], index ")) << input;
  EXPECT_EQ(input.find("gradient of share"), std::string::npos);
  const std::string parameter = failures(found(Fault::parameter_gradient));
  EXPECT_TRUE(parameter.starts_with("gradient of share: ")) << parameter;
  EXPECT_EQ(parameter.find("gradient of input"), std::string::npos);
}

TEST(Conformance, AnF32PathOfItsOwnIsHeldAgainstF64) {
  const std::string text = failures(found(Fault::single));
  EXPECT_TRUE(text.starts_with("f32 as f64: f32: the result, element ")) << text;
}

TEST(Conformance, StateOutsideOfParametersIsFound) {
  EXPECT_EQ(failures(found(Fault::hidden)),
            "save and load: loaded layer: the result differs from the saved layer's: something that matters "
            "is no parameter\n");
  EXPECT_NE(failures(found(Fault::counts))
                .find("repeatable: call: the result differs between call 1 and "
                      "call 2 on the same input\n"),
            std::string::npos);
  EXPECT_NE(failures(found(Fault::writes)).find("a call changes the parameter share"), std::string::npos);
}

TEST(Conformance, BitsThatDependOnTheThreadsAreFound) {
  const int before = threads();
  set_threads(1);
  EXPECT_EQ(failures(found(Fault::threads)),
            "threads: threads: the result differs between 1 and 2 threads\n");
  EXPECT_EQ(threads(), 1);
  set_threads(before);
}

TEST(Conformance, MemoryThatIsKeptIsFound) {
  const std::string text = failures(found(Fault::grows));
  EXPECT_TRUE(text.starts_with("memory: call: keeps 1 more blocks (")) << text;
}

TEST(Conformance, WhatALayerThrowsIsAFailure) {
  const KnownLayer layer =
      known_layer<Square>("square", "", Fault::none, {{{2, 5}}},  // share has 3 numbers
                          [](Square& square, std::span<const Tensor> x) { return square(x[0]); });
  const Conformance broken = check_conformance(layer);
  EXPECT_FALSE(broken.passed());
  for (const ConformanceCheck& check : broken.checks) EXPECT_FALSE(check.passed) << check.name;
  KnownLayer nothing = layer;
  nothing.build = [] { return nullptr; };
  EXPECT_NE(failures(check_conformance(nothing)).find("the builder of 'square' returned nothing"),
            std::string::npos);
}

TEST(Conformance, ACatalogueKnowsALayerOnce) {
  Catalogue catalogue;
  for (const KnownLayer& layer : built_in_layers()) catalogue.add(layer);
  ASSERT_NE(catalogue.find_layer("linear"), nullptr);
  EXPECT_EQ(catalogue.find_layer("liner"), nullptr);
  try {
    catalogue.add(built_in_layers()[0]);
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "catalogue: two layers are named 'attention'");
  }
}

}  // namespace
}  // namespace headlab
