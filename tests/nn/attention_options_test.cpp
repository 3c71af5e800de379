// Every option of the layer: gradients with all parameters, what it adds to the parameters, what it does.
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "framework/autograd/gradcheck.h"
#include "framework/nn/attention.h"
#include "framework/nn/step_context.h"
#include "framework/ops/arithmetic.h"
#include "framework/ops/linear.h"
#include "framework/ops/matmul.h"
#include "framework/ops/reduction.h"
#include "framework/ops/shaping.h"
#include "tests/support/ops.h"

namespace headlab {
namespace {

using Options = MultiHeadAttention::Options;
using QkNorm = MultiHeadAttention::QkNorm;
using Rotary = MultiHeadAttention::Rotary;

Tensor scaled_product(const Tensor& q, const Tensor& k) {
  const Tensor scores = matmul(q, swap_axes(k, 2, 3));
  return mul(scores, 0.4);
}

// Options of a layer 6 wide with 3 heads, by name; "plain" first.
std::vector<std::pair<std::string, Options>> variants() {
  const auto of = [](auto set) {
    Options o{.d_model = 6, .heads = 3};
    set(o);
    return o;
  };
  const RelativeBuckets causal_buckets{.buckets = 3, .max_distance = 5, .bidirectional = false};
  return {
      {"plain", of([](Options&) {})},
      {"GQA", of([](Options& o) { o.heads = 6, o.kv_heads = 2; })},
      {"MQA", of([](Options& o) { o.kv_heads = 1; })},
      {"d_k and d_v", of([](Options& o) { o.d_k = 3, o.d_v = 5; })},
      {"cross", of([](Options& o) { o.kdim = 5, o.vdim = 7, o.cross = true; })},
      {"no bias", of([](Options& o) { o.bias = false; })},
      {"no W_O", of([](Options& o) { o.out_proj = false; })},
      {"scale", of([](Options& o) { o.scale = 1.7; })},
      {"rms norm", of([](Options& o) { o.qk_norm = QkNorm::rms; })},
      {"layer norm", of([](Options& o) { o.d_k = 5, o.qk_norm = QkNorm::layer; })},
      {"softcap", of([](Options& o) { o.softcap = 0.5; })},
      {"sink", of([](Options& o) { o.sink = true; })},
      {"window", of([](Options& o) { o.window = 2; })},
      {"alibi", of([](Options& o) { o.alibi = true; })},
      {"relative", of([](Options& o) { o.relative_bias = {.buckets = 6, .max_distance = 4}; })},
      {"causal relative", of([&](Options& o) { o.relative_bias = causal_buckets; })},
      {"relative keys", of([](Options& o) { o.relative_keys = {.reach = 3, .std = 0.7}; })},
      {"causal relative keys", of([](Options& o) {
         o.heads = 6, o.kv_heads = 2;
         o.relative_keys = {.reach = 2, .std = 0.7, .bidirectional = false};
       })},
      {"smeared keys", of([](Options& o) { o.heads = 6, o.kv_heads = 2, o.smeared_keys = true; })},
      {"rotary halves", of([](Options& o) { o.d_k = 4, o.rotary = Rotary{}; })},
      {"rotary neighbours",
       of([](Options& o) { o.d_k = 4, o.rotary = {.base = 20, .pairing = RotaryPairing::neighbours}; })},
      {"partial rotary", of([](Options& o) { o.d_k = 5, o.rotary = {.width = 2}; })},
      {"dropout", of([](Options& o) { o.dropout = 0.4; })},
      {"own score", of([](Options& o) { o.score = scaled_product; })},
      {"everything", of([&](Options& o) {
         o = {.d_model = 6, .heads = 4, .kv_heads = 2, .d_k = 5, .d_v = 3, .dropout = 0.2, .scale = 0.6};
         o.rotary = {.width = 4};
         o.alibi = o.sink = true;
         o.relative_bias = causal_buckets;
         o.qk_norm = QkNorm::rms;
         o.softcap = 2;
         o.window = 3;
       })},
  };
}

TEST(AttentionOptions, GradientsAgreeWithDifferencesForInputsAndParameters) {
  const DefaultDType f64(DType::f64);
  for (const auto& variant : variants()) {
    const Options& o = variant.second;
    MultiHeadAttention layer(o);
    initialise(layer, 3);
    if (layer.qkv_bias) layer.qkv_bias->tensor().change() = random_array(layer.qkv_bias->tensor().shape(), 5);
    std::vector<Tensor> inputs{Tensor(random_array({2, 3, 6}, 1), true)};
    if (o.cross) {
      inputs.emplace_back(random_array({2, 5, o.kdim}, 2), true);
      inputs.emplace_back(random_array({2, 5, o.vdim}, 3), true);
    }
    for (const NamedParameter& p : layer.parameters()) inputs.push_back(p.parameter->tensor());
    for (const bool weights : {false, true}) {
      const auto f = [&](std::span<const Tensor> in) {
        const TrainingStep step({.seed = 1, .step = 2});
        const MultiHeadAttention::Call call{.mask = Mask::causal(), .weights = weights};
        return o.cross ? layer(in[0], in[1], in[2], call).out : layer(in[0], call).out;
      };
      const GradcheckResult result = gradcheck(f, inputs);
      EXPECT_TRUE(result) << variant.first << (weights ? ", composite: " : ", streaming: ") << result.message;
    }
  }
}

TEST(AttentionOptions, AddParametersAndChangeNoneOfTheOthers) {
  const auto state_of = [](const Options& o) {
    MultiHeadAttention layer(o);
    initialise(layer, 9);
    return layer.state();
  };
  const auto plain = state_of(variants()[0].second);
  EXPECT_EQ(plain.size(), 4U);
  std::map<std::string, std::string> added;
  for (const auto& [name, options] : variants()) {
    const auto state = state_of(options);
    for (const auto& [path, array] : state) {
      const auto found = plain.find(path);
      if (found == plain.end()) {
        added[name] += path + " " + array.shape().str() + " ";
      } else if (found->second.shape() == array.shape()) {
        EXPECT_TRUE(same_bits(array, found->second)) << name << ", " << path;
      }
    }
  }
  EXPECT_EQ(added, (std::map<std::string, std::string>{
                       {"causal relative", "relative_bias [3, 3] "},
                       {"causal relative keys", "relative_keys [2, 6] "},
                       {"cross", "k.weight [6, 5] q.weight [6, 6] v.weight [6, 7] "},
                       {"everything", "k_norm.weight [5] q_norm.weight [5] relative_bias [3, 4] sink [4] "},
                       {"layer norm", "k_norm.bias [5] k_norm.weight [5] q_norm.bias [5] q_norm.weight [5] "},
                       {"relative", "relative_bias [6, 3] "},
                       {"relative keys", "relative_keys [5, 6] "},
                       {"rms norm", "k_norm.weight [2] q_norm.weight [2] "},
                       {"sink", "sink [3] "},
                       {"smeared keys", "smear [2] "}}));
}

TEST(AttentionOptions, FirstValuesOfSinksAndRelativeBiases) {
  for (const std::int64_t heads : {8, 16}) {
    MultiHeadAttention layer(
        {.d_model = 64, .heads = heads, .relative_bias = RelativeBuckets{}, .sink = true});
    initialise(layer, 3);
    EXPECT_EQ(layer.sink->role(), Role::bias);
    EXPECT_EQ(layer.relative_bias->role(), Role::position);
    EXPECT_TRUE(same_bits(layer.sink->tensor().value(), Array::zeros({heads})));
    double square = 0;
    for (const double x : numbers(layer.relative_bias->tensor().value())) square += x * x;
    EXPECT_NEAR(std::sqrt(square / (32 * static_cast<double>(heads))), 0.125, 0.015);  // 1/√64
  }
}

TEST(AttentionOptions, WithoutProjectionBiasesAndWithAScaleItIsTheFormula) {
  const DefaultDType f64(DType::f64);
  MultiHeadAttention layer(
      {.d_model = 6, .heads = 2, .kv_heads = 1, .bias = false, .out_proj = false, .scale = 0.9});
  initialise(layer, 3);
  const Tensor x(random_array({1, 5, 6}, 1));
  const auto projected = [&](const Tensor& w) { return reshape(linear(x, w, {}), {5, w.dim(0)}); };
  const Tensor q = projected(layer.q_proj().weight);
  const Tensor k = projected(layer.k_proj().weight);
  const Tensor v = projected(layer.v_proj().weight);
  const MultiHeadAttention::Result result = layer(x, {.weights = true});
  ASSERT_EQ(result.out.shape(), (Shape{1, 5, 6}));
  for (std::int64_t head = 0; head < 2; ++head) {
    for (std::int64_t i = 0; i < 5; ++i) {
      std::vector<double> e;
      double total = 0;
      for (std::int64_t j = 0; j < 5; ++j) {
        double s = 0;
        for (std::int64_t c = 0; c < 3; ++c)
          s += q.value().at(i * 6 + head * 3 + c) * k.value().at(j * 3 + c);
        e.push_back(std::exp(0.9 * s));
        total += e.back();
      }
      for (std::int64_t c = 0; c < 3; ++c) {
        double z = 0;
        for (std::int64_t j = 0; j < 5; ++j)
          z += e[static_cast<std::size_t>(j)] / total * v.value().at(j * 3 + c);
        EXPECT_NEAR(result.out.value().at(i * 6 + head * 3 + c), z, 1e-12);
      }
    }
  }
  EXPECT_TRUE(close(layer(x).out.value(), result.out.value(), 1e-12));
}

// Scores 0.5·q·(k_j + R[δ]), and keys σ(a)·k_j + (1 − σ(a))·k_{j−1}, with one head of width 3.
TEST(AttentionOptions, RelativeAndSmearedKeysAreTheirFormulas) {
  const DefaultDType f64(DType::f64);
  const Tensor x(random_array({1, 4, 3}, 1));
  for (const bool relative : {true, false}) {
    Options options{.d_model = 3, .bias = false, .out_proj = false, .scale = 0.5, .smeared_keys = !relative};
    if (relative) options.relative_keys = {.reach = 2, .std = 1, .bidirectional = false};
    MultiHeadAttention layer(options);
    initialise(layer, 3);
    if (!relative) layer.smear->tensor().change().fill(0.7);
    const double share = 1 / (1 + std::exp(-0.7));
    const Array q = linear(x, layer.q_proj().weight, {}).value(),
                k = linear(x, layer.k_proj().weight, {}).value();
    const Array weights = layer(x, {.mask = Mask::causal(), .weights = true}).weights.value();
    for (std::int64_t i = 0; i < 4; ++i) {
      std::vector<double> e;
      double total = 0;
      for (std::int64_t j = 0; j <= i; ++j) {
        double score = 0;
        for (std::int64_t c = 0; c < 3; ++c) {
          double key = k.at(j * 3 + c);
          if (relative) {
            key += layer.relative_keys->tensor().value().at((i == j ? 1 : 0) * 3 + c);
          } else {
            key = share * key + (1 - share) * (j > 0 ? k.at((j - 1) * 3 + c) : 0);
          }
          score += 0.5 * q.at(i * 3 + c) * key;
        }
        e.push_back(std::exp(score));
        total += e.back();
      }
      for (std::int64_t j = 0; j <= i; ++j) {
        EXPECT_NEAR(weights.at(i * 4 + j), e[static_cast<std::size_t>(j)] / total, 1e-12)
            << relative << i << j;
      }
    }
  }
}

TEST(AttentionOptions, SmearedKeysRefuseACache) {
  MultiHeadAttention layer({.d_model = 6, .heads = 3, .smeared_keys = true});
  layer.eval();
  KeyValueCache cache;
  EXPECT_EQ(error_of([&] {
              layer(Tensor(Array::zeros({1, 2, 6})), {.cache = &cache});
            }),
            "attention: smeared keys cannot go on from a cache");
  EXPECT_EQ(error_of([] {
              const MultiHeadAttention::RelativeKeys none{.reach = 0};
              MultiHeadAttention({.d_model = 6, .heads = 3, .relative_keys = none});
            }),
            "attention: relative keys of reach 0, at least 1");
}

TEST(AttentionOptions, WeightsAreThoseBeforeDropoutAndKeepTheirType) {
  MultiHeadAttention layer({.d_model = 6, .heads = 3, .dropout = 0.5});
  initialise(layer, 3);
  const Tensor x(random_array({2, 5, 6}, 1).to(DType::f32));
  const MultiHeadAttention::Result r = layer(x, {.weights = true});
  for (const double total : numbers(sum(r.weights, {3}).value())) EXPECT_NEAR(total, 1, 1e-6);
  layer.eval();
  EXPECT_TRUE(same_bits(layer(x, {.weights = true}).weights.value(), r.weights.value()));
  EXPECT_FALSE(same_bits(layer(x, {.weights = true}).out.value(), r.out.value()));
}

// The type of a layer is that of its parameters, wherever it is called.
TEST(AttentionOptions, PositionsHaveTheTypeOfTheLayer) {
  std::optional<MultiHeadAttention> layer;
  {
    const DefaultDType f64(DType::f64);
    layer.emplace(variants().back().second);
  }
  initialise(*layer, 1);
  EXPECT_EQ((*layer)(Tensor(random_array({1, 4, 6}, 1)), {.mask = Mask::causal()}).out.dtype(), DType::f64);
}

TEST(AttentionOptions, TheWindowJoinsTheMaskOfTheCall) {
  MultiHeadAttention narrow({.d_model = 6, .heads = 3, .window = 2});
  MultiHeadAttention wide({.d_model = 6, .heads = 3});
  for (MultiHeadAttention* layer : {&narrow, &wide}) initialise(*layer, 1);
  const Tensor x(random_array({1, 5, 6}, 1).to(DType::f32));
  const Mask both = Mask::causal() & Mask::window(2);
  EXPECT_TRUE(
      same_bits(narrow(x, {.mask = Mask::causal()}).out.value(), wide(x, {.mask = both}).out.value()));
}

TEST(AttentionOptions, HeadsMayChangePlacesWithTheColumnsOfTheOutputProjection) {
  const DefaultDType f64(DType::f64);
  MultiHeadAttention layer({.d_model = 6, .heads = 3, .alibi = false, .sink = true});
  initialise(layer, 3);
  layer.sink->tensor().change() = random_array({3}, 4);
  MultiHeadAttention other(layer.options());
  std::map<std::string, Array> state = layer.state();
  const std::vector<std::int64_t> order{2, 0, 1};
  for (std::int64_t head = 0; head < 3; ++head) {
    const std::int64_t from = order[static_cast<std::size_t>(head)];
    state.at("sink").data<double>()[head] = layer.sink->tensor().value().at(from);
    for (std::int64_t r = 0; r < 2; ++r) {
      for (std::int64_t c = 0; c < 6; ++c) {
        for (std::int64_t part = 0; part < 3; ++part) {
          state.at("qkv.weight").data<double>()[(part * 6 + head * 2 + r) * 6 + c] =
              layer.qkv_weight->tensor().value().at((part * 6 + from * 2 + r) * 6 + c);
        }
        state.at("out.weight").data<double>()[c * 6 + head * 2 + r] =
            (*layer.out)->weight.tensor().value().at(c * 6 + from * 2 + r);
      }
    }
  }
  other.load_state(state);
  const Tensor x(random_array({2, 7, 6}, 1));
  EXPECT_TRUE(close(other(x, {.mask = Mask::causal()}).out.value(),
                    layer(x, {.mask = Mask::causal()}).out.value(), 1e-14));
  EXPECT_FALSE(same_bits(state.at("qkv.weight"), layer.state().at("qkv.weight")));
}

TEST(AttentionOptions, ThePathSaysWhyItIsTheComposite) {
  MultiHeadAttention layer({.d_model = 6, .heads = 3});
  EXPECT_EQ(layer.attention_path(), "streaming");
  EXPECT_EQ(layer.attention_path({.weights = true}), "composite: the call asks for weights");
  MultiHeadAttention own({.d_model = 6, .heads = 3, .score = scaled_product});
  EXPECT_EQ(own.attention_path(), "composite: the layer has its own score function");
  MultiHeadAttention shaw({.d_model = 6, .heads = 3, .relative_keys = MultiHeadAttention::RelativeKeys{4}});
  EXPECT_EQ(shaw.attention_path(), "composite: the layer has relative keys");
  for (const auto& [name, options] : variants()) {
    if (options.score || options.relative_keys) continue;
    EXPECT_EQ(MultiHeadAttention(options).attention_path(), "streaming") << name;
  }
}

}  // namespace
}  // namespace headlab
