// What the layer refuses, and in which words.
#include <cmath>

#include "framework/nn/attention.h"
#include "tests/support/errors.h"

namespace headlab {
namespace {

using Options = MultiHeadAttention::Options;
using Rotary = MultiHeadAttention::Rotary;

TEST(AttentionErrors, ImpossibleOptionsAreFoundAtConstruction) {
  const auto text = [](const Options& o) { return error_of([&] { const MultiHeadAttention layer(o); }); };
  EXPECT_EQ(text({.d_model = 6, .heads = 3, .d_k = -1}),
            "attention: d_k -1, d_v 0, kdim 0, vdim 0: none is negative");
  EXPECT_EQ(text({.d_model = 6, .heads = 3, .dropout = 1.5}), "attention: dropout 1.5 is not in [0, 1]");
  EXPECT_EQ(text({.d_model = 6, .heads = 3, .softcap = -1}),
            "attention: softcap -1 is not a number from 0 on");
  EXPECT_EQ(text({.d_model = 6, .heads = 3, .window = -2}), "attention: window -2 is negative");
  EXPECT_EQ(text({.d_model = 6, .heads = 3, .scale = NAN}), "attention: scale nan is not finite");
  EXPECT_EQ(text({.d_model = 9, .heads = 3, .rotary = Rotary{}}),
            "attention: rotary positions need an even d_k or width, not 3 (d_model 9, heads 3)");
  EXPECT_EQ(text({.d_model = 9, .heads = 3, .rotary = Rotary{.width = 4}}),
            "attention: rotary width 4 is not in 2 … d_k = 3");
  EXPECT_EQ(text({.d_model = 6, .heads = 3, .rotary = Rotary{.base = 0}}),
            "attention: rotary base 0 is not positive");
  EXPECT_EQ(text({.d_model = 6, .heads = 3, .relative_bias = RelativeBuckets{.buckets = 7}}),
            "relative_bucket: 7 buckets; needs at least 2, or an even number from 4 on when bidirectional");
  const MultiHeadAttention partial({.d_model = 9, .heads = 3, .rotary = Rotary{.width = 2}});
  EXPECT_EQ(partial.options().rotary->width, 2);
}

TEST(AttentionErrors, CallsThatDoNotFitNameTheSizes) {
  MultiHeadAttention layer({.d_model = 6, .heads = 3, .kdim = 5, .vdim = 7});
  const Tensor x = Tensor::zeros({2, 3, 6});
  EXPECT_EQ(error_of([&] { layer(x); }),
            "attention: keys 5 and values 7 wide do not come from x, 6 wide: give all three");
  EXPECT_EQ(
      error_of([&] { layer(x, x, x); }),
      "attention: needs query [batch, n_q, 6], key [batch, n_k, 5], value [batch, n_k, 7], not [2, 3, 6], "
      "[2, 3, 6], [2, 3, 6]");
  EXPECT_EQ(error_of([&] {
              layer(Tensor::zeros({2, 6}));
            }),
            "attention: needs x [batch, tokens, 6], not [2, 6]");
}

}  // namespace
}  // namespace headlab
