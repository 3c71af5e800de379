#include "framework/nn/module.h"

#include "framework/nn/step_context.h"
#include "framework/nn/transformer_block.h"

namespace headlab {
namespace {

// Parents, buffers and hooks hold on to a module's address.
static_assert(!std::is_copy_constructible_v<Linear> && !std::is_move_constructible_v<Linear>);
static_assert(!std::is_copy_assignable_v<TransformerBlock> && !std::is_move_assignable_v<TransformerBlock>);

TransformerBlock::Options small() {
  return {.attention = {.d_model = 4, .heads = 2},
          .feed_forward = FeedForward::Options{.d_model = 4, .hidden = 8}};
}

TEST(Module, NamesFollowFromTheTree) {
  TransformerBlock block(small());
  std::vector<std::string> names;
  for (const NamedParameter& p : block.parameters()) names.push_back(p.path);
  const std::vector<std::string> want{"norm_attn.weight", "norm_attn.bias",  "attn.qkv.weight",
                                      "attn.qkv.bias",    "attn.out.weight", "attn.out.bias",
                                      "norm_mlp.weight",  "norm_mlp.bias",   "mlp.up.weight",
                                      "mlp.up.bias",      "mlp.down.weight", "mlp.down.bias"};
  EXPECT_EQ(names, want);
  EXPECT_EQ(block.attn->path(), "attn");
}

TEST(Module, StateGoesRoundAndIsAllOrNothing) {
  TransformerBlock a(small());
  TransformerBlock b(small());
  initialise(a, 1);
  initialise(b, 2);
  auto state = a.state();
  b.load_state(state);
  EXPECT_EQ(b.state().at("mlp.up.weight").at(3), state.at("mlp.up.weight").at(3));

  const double before = b.attn->qkv_weight->tensor().value().at(0);
  state.at("attn.qkv.weight").fill(9);
  state["mlp.up.weight"] = Array::zeros({3, 3});
  try {
    b.load_state(state);
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "load_state: 'mlp.up.weight' has shape [3, 3], the model needs [8, 4]");
  }
  EXPECT_EQ(b.attn->qkv_weight->tensor().value().at(0), before);
  state = a.state();
  state.erase("norm_attn.bias");
  EXPECT_THROW(b.load_state(state), Error);
  state = a.state();
  state["unknown"] = Array::zeros({1});
  EXPECT_THROW(b.load_state(state), Error);
}

TEST(Module, FreezeAndModesReachTheWholeTree) {
  TransformerBlock block(small());
  block.freeze();
  EXPECT_FALSE(block.mlp->operator->()->up->weight.tensor().requires_grad());
  block.freeze(false);
  EXPECT_TRUE(block.mlp->operator->()->up->weight.tensor().requires_grad());
  block.eval();
  EXPECT_FALSE(block.attn->training());
  block.train();
  EXPECT_TRUE(block.attn->training());
}

TEST(Module, SameSeedSameBits) {
  TransformerBlock a(small());
  TransformerBlock b(small());
  initialise(a, 5);
  initialise(b, 5);
  const auto left = a.state();
  const auto right = b.state();
  for (const auto& entry : left) {
    for (std::int64_t i = 0; i < entry.second.size(); ++i)
      EXPECT_EQ(entry.second.at(i), right.at(entry.first).at(i));
  }
  initialise(b, 6);
  EXPECT_NE(a.state().at("mlp.up.weight").at(0), b.state().at("mlp.up.weight").at(0));
}

TEST(Module, TwoChildrenOfOneNameAreAnError) {
  class Twice : public Module {
   public:
    Twice() : a(this, "x", 0.1), b(this, "x", 0.1) {}
    Child<Dropout> a, b;
  };
  EXPECT_THROW(Twice(), Error);
}

TEST(TransformerBlock, PostNormNormalisesItsResult) {
  auto options = small();
  options.order = TransformerBlock::Order::post;
  TransformerBlock block(options);
  initialise(block, 1);
  const Tensor x = Tensor::of<float>({1, 2, 4}, {1, -2, 3, 4, 0.5F, 6, -7, 8});
  const Array y = block(x, Mask::causal()).value();
  for (const std::int64_t row : {0, 1}) {
    double total = 0;
    for (std::int64_t c = 0; c < 4; ++c) total += y.at(row * 4 + c);
    EXPECT_NEAR(total, 0, 1e-5);
  }
}

TEST(TransformerBlock, CrossAttentionNeedsMemory) {
  auto options = small();
  options.cross_attention = true;
  TransformerBlock block(options);
  initialise(block, 1);
  const Tensor x = Tensor::zeros({1, 2, 4});
  EXPECT_THROW(block(x, Mask::causal()), Error);
  EXPECT_EQ(block(x, Mask::causal(), {.value = Tensor::zeros({1, 5, 4})}).shape(), (Shape{1, 2, 4}));
}

TEST(Dropout, IsOffInEvaluationAndAFunctionOfTheStep) {
  Dropout layer(0.5);
  const Tensor x(Array::full({4, 25}, 1));
  layer.eval();
  EXPECT_TRUE(layer(x).same_as(x));
  layer.train();
  const auto at = [&](std::int64_t step) {
    const TrainingStep scope({.seed = 3, .step = step});
    const Array y = layer(x).value();
    return std::vector<float>(y.values<float>().begin(), y.values<float>().end());
  };
  EXPECT_EQ(at(1), at(1));
  EXPECT_NE(at(1), at(2));
  // A shard of the batch drops what the whole batch drops there.
  const auto whole = at(1);
  const TrainingStep scope({.seed = 3, .step = 1, .first_example = 2});
  const Array part = layer(Tensor(Array::full({2, 25}, 1))).value();
  EXPECT_EQ(std::vector<float>(part.values<float>().begin(), part.values<float>().end()),
            std::vector<float>(whole.begin() + 50, whole.end()));
  EXPECT_THROW(Dropout(1.5), Error);
}

}  // namespace
}  // namespace headlab
