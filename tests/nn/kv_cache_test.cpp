#include "framework/nn/kv_cache.h"

#include <vector>

#include "framework/nn/attention.h"
#include "tests/support/attention.h"
#include "tests/support/errors.h"

namespace headlab {
namespace {

using Options = MultiHeadAttention::Options;
constexpr std::int64_t tokens = 11;

std::vector<std::pair<const char*, Options>> variants() {
  const MultiHeadAttention::Rotary partial{.base = 100, .pairing = RotaryPairing::neighbours, .width = 2};
  return {
      {"plain", {.d_model = 12, .heads = 3}},
      {"grouped", {.d_model = 12, .heads = 6, .kv_heads = 2, .d_k = 5, .d_v = 7}},
      {"rotary", {.d_model = 12, .heads = 3, .rotary = MultiHeadAttention::Rotary{}}},
      {"partial rotary, one key head", {.d_model = 12, .heads = 3, .kv_heads = 1, .rotary = partial}},
      {"alibi", {.d_model = 12, .heads = 3, .alibi = true}},
      {"relative bias",
       {.d_model = 12,
        .heads = 3,
        .relative_bias = RelativeBuckets{.buckets = 6, .max_distance = 9, .bidirectional = false}}},
      {"window", {.d_model = 12, .heads = 3, .window = 4}},
      {"softcap and sink", {.d_model = 12, .heads = 3, .softcap = 3, .sink = true}},
      {"normalised", {.d_model = 12, .heads = 3, .qk_norm = MultiHeadAttention::QkNorm::rms}},
      {"no output projection", {.d_model = 12, .heads = 3, .bias = false, .out_proj = false}},
      {"relative keys",
       {.d_model = 12, .heads = 3, .relative_keys = MultiHeadAttention::RelativeKeys{.reach = 4, .std = 1}}},
      {"grouped, turned, with a window",
       {.d_model = 12,
        .heads = 4,
        .kv_heads = 2,
        .d_k = 6,
        .d_v = 5,
        .rotary = MultiHeadAttention::Rotary{},
        .qk_norm = MultiHeadAttention::QkNorm::layer,
        .softcap = 5,
        .sink = true,
        .window = 5}}};
}

/// The layer's output for tokens that come in pieces of these sizes.
Array in_pieces(MultiHeadAttention& layer, const Tensor& x, const std::vector<std::int64_t>& sizes) {
  KeyValueCache cache;
  std::vector<Tensor> rows;
  std::int64_t from = 0;
  for (const std::int64_t size : sizes) {
    const Tensor more = slice(x, 1, from, from + size);
    rows.push_back(layer(more, {.mask = Mask::causal(), .cache = &cache}).out);
    from += size;
    EXPECT_EQ(cache.length(), from);
  }
  return concat(rows, 1).value();
}

TEST(KeyValueCache, GivesTheBitsOfTheWholePass) {
  const NoGrad no_grad;
  for (const auto& [name, options] : variants()) {
    for (const std::int64_t batch : {1, 2}) {
      SCOPED_TRACE(testing::Message() << name << ", batch " << batch);
      MultiHeadAttention layer(options);
      initialise(layer, 3);
      Random random(4, Stream::statistics);
      const Tensor x(random_array(random, {batch, tokens, 12}, DType::f32));
      const Array whole = layer(x, {.mask = Mask::causal()}).out.value();
      EXPECT_TRUE(same_bits(in_pieces(layer, x, {tokens}), whole));
      EXPECT_TRUE(same_bits(in_pieces(layer, x, std::vector<std::int64_t>(tokens, 1)), whole));
      EXPECT_TRUE(same_bits(in_pieces(layer, x, {4, 1, 0, 5, 1}), whole));
    }
  }
}

// Over the edges of the kernel's tiles of 128 keys, and at a width where a product of many rows is blocked.
TEST(KeyValueCache, GivesTheBitsOfTheWholePassOverManyTiles) {
  const NoGrad no_grad;
  constexpr std::int64_t many = 300;
  for (const std::int64_t window : {0, 70}) {
    MultiHeadAttention layer(
        {.d_model = 96, .heads = 4, .kv_heads = 2, .rotary = MultiHeadAttention::Rotary{}, .window = window});
    initialise(layer, 3);
    Random random(4, Stream::statistics);
    const Tensor x(random_array(random, {1, many, 96}, DType::f32));
    const Array whole = layer(x, {.mask = Mask::causal()}).out.value();
    EXPECT_TRUE(same_bits(in_pieces(layer, x, std::vector<std::int64_t>(many, 1)), whole));
    EXPECT_TRUE(same_bits(in_pieces(layer, x, {127, 1, 1, 126, 3, 40, 2}), whole));
  }
}

TEST(KeyValueCache, GivesTheBitsOfTheWholePassOnTheCompositeToo) {
  const NoGrad no_grad;
  MultiHeadAttention layer({.d_model = 12, .heads = 3, .rotary = MultiHeadAttention::Rotary{}});
  initialise(layer, 3);
  Random random(4, Stream::statistics);
  const Tensor x(random_array(random, {2, tokens, 12}, DType::f32));
  std::vector<std::int64_t> keys;
  const Hook hook(layer, "pattern",
                  [&](const HookSite&, const Tensor& p) { keys.push_back(p.dim(2) * 100 + p.dim(3)); });
  const Array whole = layer(x, {.mask = Mask::causal()}).out.value();
  EXPECT_TRUE(same_bits(in_pieces(layer, x, {4, 1, 6}), whole));
  EXPECT_EQ(keys, (std::vector<std::int64_t>{1111, 404, 105, 611}));
}

TEST(MultiHeadAttention, QueriesFromAPositionOnHaveTheBitsOfAllQueries) {
  const NoGrad no_grad;
  auto all = variants();
  all.push_back(
      {"relative keys",
       {.d_model = 12,
        .heads = 3,
        .relative_keys = MultiHeadAttention::RelativeKeys{.reach = 7, .std = 0.5, .bidirectional = false}}});
  all.push_back({"smeared", {.d_model = 12, .heads = 3, .smeared_keys = true}});
  for (const auto& [name, options] : all) {
    for (const std::int64_t from : {std::int64_t{1}, std::int64_t{7}, tokens}) {
      SCOPED_TRACE(testing::Message() << name << ", from " << from);
      MultiHeadAttention layer(options);
      initialise(layer, 3);
      Random random(4, Stream::statistics);
      const Tensor x(random_array(random, {2, tokens, 12}, DType::f32));
      for (const Mask& mask : {Mask::causal(), Mask()}) {
        const Tensor whole = layer(x, {.mask = mask}).out;
        const Tensor part = layer(x, {.mask = mask, .from = from}).out;
        EXPECT_TRUE(same_bits(part.value(), slice(whole, 1, from, tokens).value()));
      }
    }
  }
}

TEST(MultiHeadAttention, RefusesQueriesFromBeyondTheTokensOrBesideACache) {
  const NoGrad no_grad;
  MultiHeadAttention layer({.d_model = 12, .heads = 3});
  const Tensor x = Tensor::full({2, tokens, 12}, 1);
  EXPECT_EQ(error_of([&] { layer(x, {.from = 12}); }),
            "attention: queries from position 12 on, needs 0 to 11 and no cache");
  EXPECT_EQ(error_of([&] { layer(x, {.from = -1}); }),
            "attention: queries from position -1 on, needs 0 to 11 and no cache");
  KeyValueCache cache;
  EXPECT_EQ(error_of([&] { layer(x, {.cache = &cache, .from = 1}); }),
            "attention: queries from position 1 on, needs 0 to 11 and no cache");
  EXPECT_EQ(error_of([&] { layer(x, x, x, {.from = 1}); }),
            "attention: queries from 1 on: give those alone beside keys and values");
}

TEST(KeyValueCache, MasksSpeakOfAllTokens) {
  const NoGrad no_grad;
  MultiHeadAttention layer({.d_model = 12, .heads = 3});
  initialise(layer, 3);
  Random random(4, Stream::statistics);
  const Tensor x(random_array(random, {2, 7, 12}, DType::f32));
  const Array valid = Array::of<std::uint8_t>({2, 7}, {1, 1, 1, 1, 1, 1, 1, 0, 0, 1, 1, 1, 1, 1});
  const Array whole = layer(x, {.mask = Mask::causal() & Mask::valid_keys(valid)}).out.value();
  KeyValueCache cache;
  const Array first = Array::of<std::uint8_t>({2, 3}, {1, 1, 1, 0, 0, 1});
  layer(slice(x, 1, 0, 3), {.mask = Mask::causal() & Mask::valid_keys(first), .cache = &cache});
  const Array rest =
      layer(slice(x, 1, 3, 7), {.mask = Mask::causal() & Mask::valid_keys(valid), .cache = &cache})
          .out.value();
  EXPECT_TRUE(same_bits(rest, slice(Tensor(whole), 1, 3, 7).value()));
}

TEST(KeyValueCache, KeepsWhatWasHandedOut) {
  const NoGrad no_grad;
  for (const std::int64_t batch : {1, 2}) {
    KeyValueCache cache;
    Random random(5, Stream::statistics);
    std::vector<Tensor> seen;
    std::vector<Array> copies;
    std::vector<Tensor> parts;
    for (int i = 0; i < 9; ++i) {
      parts.emplace_back(random_array(random, {batch, 1, 3}, DType::f32));
      cache.append(parts.back(), Tensor::full({batch, 1, 2}, i));
      seen.push_back(cache.keys());
      copies.push_back(cache.keys().value().copy());
    }
    EXPECT_TRUE(same_bits(cache.keys().value(), concat(parts, 1).value()));
    EXPECT_EQ(cache.values().value().at(cache.values().size() - 1), 8);
    for (std::size_t i = 0; i < seen.size(); ++i) EXPECT_TRUE(same_bits(seen[i].value(), copies[i]));
    cache.clear();
    EXPECT_EQ(cache.length(), 0);
    EXPECT_FALSE(cache.keys());
    cache.append(Tensor::zeros({3, 2, 5}), Tensor::zeros({3, 2, 5}));  // anything fits an empty one
    EXPECT_EQ(cache.length(), 2);
  }
}

TEST(KeyValueCache, RefusesWhatDoesNotContinue) {
  KeyValueCache cache;
  const Tensor two = Tensor::zeros({1, 2, 6});
  cache.append(two, two);
  const auto message = [&](const Tensor& keys, const Tensor& values) {
    const std::string text = error_of([&] { cache.append(keys, values); });
    EXPECT_EQ(cache.length(), 2);
    return text;
  };
  EXPECT_EQ(message(Tensor::zeros({3, 1, 6}), Tensor::zeros({3, 1, 6})),
            "kv_cache: keys of f32 [3, 1, 6] do not continue those of f32 [1, 2, 6]");
  EXPECT_EQ(message(two, Tensor::zeros({1, 2, 5})),
            "kv_cache: values of f32 [1, 2, 5] do not continue those of f32 [1, 2, 6]");
  EXPECT_EQ(message(two, Tensor::zeros({1, 1, 6})),
            "kv_cache: keys [1, 2, 6] and values [1, 1, 6] are not of the same tokens");
  EXPECT_EQ(message(Tensor::zeros({1, 2, 6}, DType::f64), two),
            "kv_cache: keys of f64 [1, 2, 6] do not continue those of f32 [1, 2, 6]");
  EXPECT_EQ(message(Tensor::zeros({2, 6}), two),
            "kv_cache: needs keys of shape [batch, tokens, width], not [2, 6]");
  EXPECT_EQ(message(Tensor(Array::zeros({1, 2, 6}), true), two),
            "kv_cache: keys need a gradient; a cache is for use under NoGrad");
}

TEST(KeyValueCache, IsForSelfAttentionInEvaluationModeWithoutGradients) {
  MultiHeadAttention layer({.d_model = 6, .heads = 3, .dropout = 0.5});
  initialise(layer, 1);
  const Tensor x = Tensor::zeros({1, 2, 6});
  KeyValueCache cache;
  EXPECT_EQ(error_of([&] { layer(x, {.cache = &cache}); }),
            "attention: a cache is for use in evaluation mode, not with dropout 0.5");
  layer.eval();
  EXPECT_EQ(error_of([&] { layer(x, {.cache = &cache}); }),
            "kv_cache: keys need a gradient; a cache is for use under NoGrad");
  const NoGrad no_grad;
  EXPECT_EQ(error_of([&] { layer(x, x, x, {.cache = &cache}); }),
            "attention: a cache remembers self attention, not keys and values given beside x");
  EXPECT_EQ(cache.length(), 0);
  layer(x, {.cache = &cache});
  EXPECT_EQ(cache.length(), 2);
}

}  // namespace
}  // namespace headlab
