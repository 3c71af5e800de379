#include <vector>

#include "framework/train/generate.h"
#include "models/build.h"
#include "models/decoder.h"
#include "tests/support/attention.h"
#include "tests/support/errors.h"

namespace headlab {
namespace {

Needs text_needs(Needs::Positions positions) {
  Needs needs;
  needs.streams = {{"token", 7, 0.5}};
  needs.readouts = {{"next", 7}};
  needs.context = 13;
  needs.layers = 2;
  needs.d_model = 12;
  needs.heads = 3;
  needs.mlp = 17;
  needs.positions = positions;
  needs.position_std = 0.5;
  needs.dropout = 0.5;
  return needs;
}

constexpr auto every_position = {Needs::Positions::none, Needs::Positions::learned, Needs::Positions::rotary};

Batch tokens_of(std::span<const std::int64_t> ids, std::int64_t batch = 1) {
  Batch b;
  b.inputs.push_back(Array::of<std::int64_t>({batch, std::ssize(ids) / batch}, ids));
  return b;
}

TEST(TextCache, GivesTheLogitsOfTheWholeText) {
  const NoGrad no_grad;
  const std::vector<std::int64_t> text{1, 5, 2, 6, 0, 3, 3, 4, 1, 2, 6, 5, 0};
  for (const auto positions : every_position) {
    Decoder model(text_needs(positions));
    initialise(model, 1);
    model.eval();
    const Tensor whole = model.logits(tokens_of(text));
    TextCache cache;
    std::int64_t from = 0;
    for (const std::int64_t count : {5, 1, 1, 4, 2}) {
      const auto piece =
          std::span(text).subspan(static_cast<std::size_t>(from), static_cast<std::size_t>(count));
      const Tensor logits = model.next_logits(tokens_of(piece), cache);
      EXPECT_TRUE(same_bits(logits.value(), slice(whole, 1, from, from + count).value()));
      from += count;
      EXPECT_EQ(cache.length(), from);
    }
    EXPECT_EQ(error_of([&] { model.next_logits(tokens_of(std::span(text).first(1)), cache); }),
              "model: 14 tokens are more than the context of 13");
    cache.clear();
    EXPECT_TRUE(same_bits(model.next_logits(tokens_of(text), cache).value(), whole.value()));
  }
}

TEST(TextCache, ServesSeveralTextsSideBySide) {
  const NoGrad no_grad;
  const std::vector<std::int64_t> ids{1, 5, 2, 6, 0, 3, 3, 4};
  Decoder model(text_needs(Needs::Positions::rotary));
  initialise(model, 1);
  model.eval();
  const Tensor whole = model.logits(tokens_of(ids, 2));  // [2, 4, 7]
  TextCache cache;
  const std::vector<std::int64_t> first{1, 5, 2, 0, 3, 3};
  model.next_logits(tokens_of(first, 2), cache);
  const std::vector<std::int64_t> last{6, 4};
  EXPECT_TRUE(same_bits(model.next_logits(tokens_of(last, 2), cache).value(), slice(whole, 1, 3, 4).value()));
}

TEST(TextCache, TextIsTheSameWithoutIt) {
  for (const auto positions : every_position) {
    const auto model = build_model(text_needs(positions));
    initialise(*model, 1);
    const std::vector<std::int64_t> prompt{1, 2, 3};
    // Longer than the context, so that the window slides in the end.
    const auto text = [&](bool cache, std::uint64_t seed) {
      return generate(*model, prompt, {.tokens = 29, .seed = seed, .cache = cache});
    };
    for (const std::uint64_t seed : {1, 2, 3}) EXPECT_EQ(text(true, seed), text(false, seed));
    EXPECT_NE(text(true, 1), text(true, 2));
  }
}

TEST(TextCache, RefusesWhatItCannotContinue) {
  const NoGrad no_grad;
  Decoder model(text_needs(Needs::Positions::learned));
  model.eval();
  const std::vector<std::int64_t> ids{1, 2};
  TextCache cache;
  model.next_logits(tokens_of(ids), cache);
  {
    const Hook throws(model, "blocks.1.attn.q", [](const HookSite&, const Tensor&) { fail("hook", "stop"); });
    EXPECT_EQ(error_of([&] { model.next_logits(tokens_of(ids), cache); }), "hook: stop");
  }
  EXPECT_EQ(error_of([&] { model.next_logits(tokens_of(ids), cache); }),
            "Decoder: the cache's layers hold 4 and 2 tokens, which an error has left behind; clear it");
  cache.layers.resize(3);
  EXPECT_EQ(error_of([&] { model.next_logits(tokens_of(ids), cache); }),
            "Decoder: a cache of 3 layers for a model of 2");
  Needs both_ways = text_needs(Needs::Positions::learned);
  both_ways.causal = false;
  Decoder other(both_ways);
  EXPECT_FALSE(other.continues());
  EXPECT_EQ(error_of([&] { other.next_logits(tokens_of(ids), cache); }),
            "Decoder: only a causal one can go on from a cache");
}

/// A user's own model, which knows nothing of caches.
class Bare : public Model {
 public:
  explicit Bare(Model& inner) : Model(inner.needs()), inner_(inner) {}
  Tensor logits(const Batch& batch) override { return inner_.logits(batch); }

 private:
  Model& inner_;
};

TEST(TextCache, IsNoDutyOfAModel) {
  const auto model = build_model(text_needs(Needs::Positions::learned));
  initialise(*model, 1);
  model->eval();
  Bare bare(*model);
  const std::vector<std::int64_t> prompt{1, 2, 3};
  EXPECT_EQ(generate(bare, prompt, {.tokens = 20}), generate(*model, prompt, {.tokens = 20}));
  TextCache cache;
  EXPECT_EQ(error_of([&] { bare.next_logits(tokens_of(prompt), cache); }),
            "model: this one cannot go on from a cache; logits() of the whole text does");
}

}  // namespace
}  // namespace headlab
