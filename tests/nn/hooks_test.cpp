#include "framework/nn/hooks.h"

#include <stdexcept>
#include <vector>

#include "framework/autograd/backward.h"
#include "framework/core/pool.h"
#include "framework/nn/attention.h"
#include "framework/ops/arithmetic.h"
#include "framework/ops/reduction.h"
#include "tests/support/attention.h"
#include "tests/support/errors.h"

namespace headlab {
namespace {

class Pair : public Module {
 public:
  Pair() : blocks(this, "blocks") {
    for (int i = 0; i < 2; ++i) blocks.add();
  }
  struct Block : Module {
    Block() : attn(this, "attn", MultiHeadAttention::Options{.d_model = 6, .heads = 3}) {}
    Child<MultiHeadAttention> attn;
  };
  Tensor operator()(const Tensor& x) {
    const Tensor y = blocks[0].attn(x).out;
    return blocks[1].attn(y).out;
  }
  ModuleList<Block> blocks;
};

class Hooks : public testing::Test {
 protected:
  Hooks() {
    initialise(model_, 1);
    Random random(2, Stream::statistics);
    x_ = Tensor(random_array(random, {2, 5, 6}, DType::f32), true);
  }
  Pair model_;
  Tensor x_;
};

const auto nothing = [](const HookSite&, const Tensor&) {};

TEST_F(Hooks, FireAtTheirSiteInTheOrderOfTheModel) {
  std::vector<std::string> seen;
  {
    const Hook all(model_, "blocks.*.attn.*", [&](const HookSite& site, const Tensor&) {
      seen.push_back(site.name);
      EXPECT_EQ(site.module.path() + "." + site.name.substr(site.name.rfind('.') + 1), site.name);
    });
    model_(x_);
  }
  ASSERT_EQ(seen.size(), 14U);
  EXPECT_EQ(seen.front(), "blocks.0.attn.q");
  EXPECT_EQ(seen[3], "blocks.0.attn.scores");
  EXPECT_EQ(seen.back(), "blocks.1.attn.out");
  model_(x_);
  EXPECT_EQ(seen.size(), 14U);
  EXPECT_EQ(hook_points(model_).size(), 14U);
}

TEST_F(Hooks, ThatOnlyReadChangeNoBitOfTheStreamingPath) {
  const Array plain = model_(x_).value();
  for (const char* site : {"q", "k", "v", "z", "out"}) {
    const Hook reads(model_, "blocks.*.attn." + std::string(site), nothing);
    EXPECT_EQ(model_.blocks[0].attn->attention_path(), "streaming");
    EXPECT_TRUE(same_bits(model_(x_).value(), plain));
  }
}

TEST_F(Hooks, InsideTheWeightsRunTheCompositeAndThePathSaysSo) {
  const Array plain = model_(x_).value();
  MultiHeadAttention& first = *model_.blocks[0].attn;
  for (const std::string site : {"scores", "pattern"}) {
    const Hook reads(model_, "blocks.0.attn." + site, nothing);
    EXPECT_EQ(first.attention_path(), "composite: a hook reads `" + site + "`");
    EXPECT_EQ(model_.blocks[1].attn->attention_path(), "streaming");
    expect_close(model_(x_).value(), plain, 1e-6);
  }
  const GradientHook gradient(model_, "blocks.0.attn.pattern", [](const HookSite&, const Array&) {});
  EXPECT_EQ(first.attention_path(), "composite: a hook reads `pattern`");
}

TEST_F(Hooks, AtOnePointActInTheOrderInWhichTheyWereMade) {
  std::vector<float> seen;
  const auto note = [&](const HookSite&, const Tensor& x) { seen.push_back(x.value().data<float>()[0]); };
  const Hook before(model_, "blocks.0.attn.z", note);
  const Hook doubles(model_, "blocks.0.attn.z", [](const HookSite&, const Tensor& x) { return mul(x, 2); });
  const Hook between(model_, "blocks.0.attn.z", note);
  const Hook again(model_, "blocks.0.attn.z", [](const HookSite&, const Tensor& x) { return mul(x, 8); });
  const Hook after(model_, "blocks.0.attn.z", note);
  model_(x_);
  EXPECT_EQ(seen, (std::vector<float>{seen[0], 2 * seen[0], 16 * seen[0]}));
}

TEST_F(Hooks, NamesAreSeenFromTheModuleThatIsGiven) {
  std::vector<std::string> seen;
  const auto note = [&](const HookSite& site, const Tensor&) { seen.push_back(site.name); };
  const Hook from_root(model_, "blocks.1.attn.z", note);
  const Hook from_block(model_.blocks[1], "attn.z", note);
  const Hook from_layer(*model_.blocks[1].attn, "z", note);
  model_(x_);
  EXPECT_EQ(seen, (std::vector<std::string>{"blocks.1.attn.z", "attn.z", "z"}));
  EXPECT_EQ(error_of([&] { find_hook_points(model_.blocks[1], "blocks.1.attn.z"); }).substr(0, 44),
            "hook: the model has no 'blocks.1.attn.z'; th");
}

TEST_F(Hooks, AreRefusedForUnknownNamesWithTheNearestListed) {
  const auto message = [&](const std::string& name) {
    return error_of([&] { const Hook hook(model_, name, nothing); });
  };
  EXPECT_EQ(message("blocks.1.atn.z"),
            "hook: the model has no 'blocks.1.atn.z'; the nearest are 'blocks.1.attn.z', 'blocks.0.attn.z', "
            "'blocks.1.attn.q', 'blocks.1.attn.k'");
  EXPECT_EQ(message("blocks.*.attn.patern"),
            "hook: the model has no 'blocks.*.attn.patern'; the nearest are 'blocks.*.attn.pattern', "
            "'blocks.*.attn.scores', 'blocks.*.attn.out', 'blocks.*.attn.q'");
  for (const char* name : {"", "*", "blocks.2.attn.z", "blocks.*.attn", "blocks.0.attn.z.", "attn.z"})
    EXPECT_NE(message(name).find("'; the nearest are '"), std::string::npos) << name;
  Linear without({.in = 2, .out = 2});
  EXPECT_EQ(error_of([&] { const Hook hook(without, "z", nothing); }),
            "hook: the model has no 'z', nor any other point for hooks");
  for (const NamedHookPoint& named : hook_points(model_)) EXPECT_FALSE(named.point->active());
}

TEST_F(Hooks, OfAnotherShapeOrTypeAreErrors) {
  const auto message = [&](const Tensor& wrong) {
    const Hook hook(model_, "blocks.0.attn.z", [&](const HookSite&, const Tensor&) { return wrong; });
    return error_of([&] { model_(x_); });
  };
  EXPECT_EQ(message(Tensor::zeros({2, 5, 7})),
            "hook: blocks.0.attn.z is [2, 5, 6] of f32; the hook gave [2, 5, 7] of f32");
  EXPECT_EQ(message(Tensor::zeros({2, 5, 6}, DType::f64)),
            "hook: blocks.0.attn.z is [2, 5, 6] of f32; the hook gave [2, 5, 6] of f64");
  EXPECT_EQ(message(Tensor()), "hook: blocks.0.attn.z is [2, 5, 6] of f32; the hook gave nothing");
  const GradientHook gradient(model_, "blocks.0.attn.z", [](const HookSite&, const Array&) {
    return Array({2, 3});
  });
  const Tensor loss = sum(model_(x_));
  EXPECT_EQ(error_of([&] { backward(loss); }),
            "hook: the gradient of blocks.0.attn.z is [2, 5, 6] of f32; the hook gave [2, 3] of f32");
}

TEST_F(Hooks, ThatThrowLeaveEverythingUsable) {
  const Array plain = model_(x_).value();
  const auto throws = [](const HookSite&, const Tensor&) { throw std::runtime_error("enough"); };
  for (const NamedHookPoint& named : hook_points(model_)) {
    bool caught = false;
    try {
      const Hook hook(model_, named.path, throws);
      model_(x_);
    } catch (const std::runtime_error& error) {
      caught = std::string(error.what()) == "enough";
    }
    EXPECT_TRUE(caught) << named.path;
    EXPECT_FALSE(named.point->active());
    EXPECT_TRUE(same_bits(model_(x_).value(), plain));
  }
  const Hook hook(model_, "blocks.1.attn.z", throws);
  for (int i = 0; i < 2; ++i) EXPECT_THROW(model_(x_), std::runtime_error);
}

TEST_F(Hooks, OfTwoModelsDoNotKnowEachOther) {
  Pair other;
  initialise(other, 1);
  int here = 0;
  int there = 0;
  const Hook first(model_, "blocks.0.attn.z", [&](const HookSite&, const Tensor&) { ++here; });
  const Hook second(other, "blocks.0.attn.z", [&](const HookSite&, const Tensor&) { ++there; });
  model_(x_);
  model_(x_);
  other(x_);
  EXPECT_EQ(here, 2);
  EXPECT_EQ(there, 1);
}

TEST_F(Hooks, OnGradientsReadAndReplace) {
  const auto gradient_of_x = [&] {
    x_.clear_grad();
    backward(sum(model_(x_)));
    return x_.grad().copy();
  };
  const Array plain = gradient_of_x();
  Array seen;
  {
    const GradientHook reads(model_, "blocks.1.attn.z",
                             [&](const HookSite&, const Array& dz) { seen = dz.copy(); });
    EXPECT_TRUE(same_bits(gradient_of_x(), plain));
  }
  ASSERT_EQ(seen.shape(), Shape({2, 5, 6}));
  const auto doubled = [](const HookSite&, const Array& dz) {
    Array twice = dz.copy();
    for (float& v : twice.values<float>()) v *= 2;
    return twice;
  };
  const GradientHook first(model_, "blocks.1.attn.z", doubled);
  const GradientHook second(model_, "blocks.1.attn.z", doubled);
  Array want = plain.copy();
  for (float& v : want.values<float>()) v *= 4;
  EXPECT_TRUE(same_bits(gradient_of_x(), want));
}

TEST_F(Hooks, OnGradientsSeeThoseOfTheReplacedValue) {
  Array at_point;
  const auto run = [&](const std::string& site) {
    at_point = Array();
    const GradientHook reads(model_, site, [&](const HookSite&, const Array& d) { at_point = d.copy(); });
    backward(sum(model_(x_)));
  };
  run("blocks.1.attn.z");
  const Array plain = at_point;  // the last layer is linear behind z
  const Hook edit(model_, "blocks.1.attn.z", [](const HookSite&, const Tensor& z) { return mul(z, 3); });
  run("blocks.1.attn.z");
  EXPECT_TRUE(same_bits(at_point, plain));  // not three times as much: that flows on to the original
}

TEST_F(Hooks, OnGradientsWorkNoLongerThanTheyLive) {
  int fired = 0;
  Tensor loss;
  {
    const GradientHook hook(model_, "blocks.0.attn.z", [&](const HookSite&, const Array&) { ++fired; });
    loss = sum(model_(x_));
  }
  backward(loss);
  EXPECT_EQ(fired, 0);
  EXPECT_TRUE(x_.has_grad());
  const NoGrad no_grad;
  const GradientHook hook(model_, "blocks.0.attn.z", [&](const HookSite&, const Array&) { ++fired; });
  EXPECT_FALSE(model_(x_).requires_grad());
}

TEST_F(Hooks, CachesKeepNamedSitesAndNothingElse) {
  const NoGrad no_grad;
  ActivationCache cache(model_, {"blocks.*.attn.z", "blocks.1.attn.pattern"});
  EXPECT_FALSE(cache.has("blocks.0.attn.z"));
  model_(x_);
  const pool::Counters once = pool::counters();
  for (int i = 0; i < 5; ++i) model_(x_);
  EXPECT_EQ(pool::counters().live_blocks, once.live_blocks);
  EXPECT_EQ(cache.values().size(), 3U);
  EXPECT_EQ(cache["blocks.1.attn.pattern"].shape(), Shape({2, 3, 5, 5}));
  EXPECT_EQ(error_of([&] { cache["blocks.0.attn.out"]; }),
            "ActivationCache: nothing was kept under 'blocks.0.attn.out'; the nearest are 'blocks.0.attn.z', "
            "'blocks.1.attn.z', 'blocks.1.attn.pattern'");
  cache.clear();
  EXPECT_EQ(pool::counters().live_blocks, once.live_blocks - 3);
  EXPECT_THROW(ActivationCache(model_, {"blocks.0.attn.z", "nowhere"}), Error);
}

}  // namespace
}  // namespace headlab
