#include "framework/train/generate.h"

#include <array>

#include "framework/core/parallel.h"
#include "tests/support/training.h"

namespace headlab {
namespace {

Needs text_needs() {
  Needs needs;
  needs.streams = {{"token", 7, 0.5}};
  needs.readouts = {{"next", 7}};
  needs.context = 5;
  needs.d_model = 12;
  needs.heads = 3;
  needs.position_std = 0.5;
  needs.dropout = 0.5;
  return needs;
}

class Generate : public testing::Test {
 protected:
  Generate() : model_(build_model(text_needs())) { initialise(*model_, 1); }
  std::unique_ptr<Model> model_;
  const std::vector<std::int64_t> prompt_{1, 2, 3};
};

TEST_F(Generate, GivesTheSameTextForTheSameSeed) {
  const auto text = generate(*model_, prompt_, {.tokens = 23, .seed = 5});
  EXPECT_EQ(text.size(), 23U);
  set_threads(4);
  EXPECT_EQ(generate(*model_, prompt_, {.tokens = 23, .seed = 5}), text);
  set_threads(0);
  EXPECT_NE(generate(*model_, prompt_, {.tokens = 23, .seed = 6}), text);
  EXPECT_TRUE(model_->training());
  EXPECT_TRUE(generate(*model_, prompt_, {.tokens = 0}).empty());
}

// Token i depends on its own random number and on the window before it: a text that goes on from the last
// tokens of another one is the same as the longer one where both are greedy.
TEST_F(Generate, SeesTheLastTokensOnly) {
  const GenerateOptions greedy{.sampling = {.temperature = 0}, .tokens = 9, .seed = 0};
  const std::vector<std::int64_t> window{4, 5, 6, 0, 1};
  std::vector<std::int64_t> longer{1, 1, 1};
  longer.insert(longer.end(), window.begin(), window.end());
  EXPECT_EQ(generate(*model_, longer, greedy), generate(*model_, window, greedy));
}

TEST_F(Generate, HandsOutTokensAndStopsWhenTold) {
  std::vector<std::int64_t> seen;
  const auto text = generate(*model_, prompt_, {.tokens = 50}, [&](std::int64_t token) {
    seen.push_back(token);
    return seen.size() < 4;
  });
  EXPECT_EQ(seen.size(), 4U);
  EXPECT_EQ(text, seen);
}

TEST_F(Generate, RefusesWhatCannotBe) {
  EXPECT_EQ(error_of([&] { generate(*model_, {}); }), "generate: the prompt is empty");
  EXPECT_EQ(error_of([&] { generate(*model_, prompt_, {.tokens = -1}); }),
            "generate: -1 tokens were asked for");
  EXPECT_EQ(error_of([&] { generate(*model_, prompt_, {.sampling = {.temperature = -1}}); }),
            "sampling: temperature -1 is not a finite number from 0 on");
  const std::array<std::int64_t, 1> outside{7};
  EXPECT_THROW(generate(*model_, outside), Error);
  const auto other = build_model(TinyTask().needs());
  EXPECT_EQ(error_of([&] { generate(*other, prompt_); }),
            "generate: needs a causal decoder that predicts the tokens it reads");
}

}  // namespace
}  // namespace headlab
