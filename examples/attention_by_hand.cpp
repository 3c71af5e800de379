// Multi-head attention step by step, on the sentence of every introduction: what each shape is, what each
// head looks at, what a causal mask does, and what the output projection is for.
#include <algorithm>
#include <cmath>
#include <sstream>
#include <string>
#include <vector>

#include <fmt/core.h>

#include "framework/nn/attention.h"
#include "framework/nn/embedding.h"
#include "framework/ops/arithmetic.h"
#include "framework/ops/linear.h"
#include "framework/ops/matmul.h"
#include "framework/ops/shaping.h"
#include "framework/ops/softmax.h"

using namespace headlab;

namespace {

void say(const char* what, const Tensor& x) { fmt::print("  {:<46}{}\n", what, x.shape()); }

// [1, T, h·d] → [h, T, d]: each head sees its own 64 columns.
Tensor split_heads(const Tensor& x, std::int64_t h) {
  return transpose(reshape(x, {x.dim(1), h, x.dim(2) / h}), {1, 0, 2});
}

double largest_difference(const Tensor& a, const Tensor& b) {
  double most = 0;
  for (std::int64_t i = 0; i < a.size(); ++i)
    most = std::max(most, std::abs(a.value().at(i) - b.value().at(i)));
  return most;
}

}  // namespace

int main() {
  constexpr std::int64_t d_model = 512;
  constexpr std::int64_t h = 8;
  constexpr std::int64_t d_k = d_model / h;
  const NoGrad inference;

  std::vector<std::string> words;
  std::istringstream sentence("The cat sat on the mat");
  for (std::string word; sentence >> word;) words.push_back(word);
  const auto tokens = static_cast<std::int64_t>(words.size());

  Embedding table({.vocabulary = tokens, .d_model = d_model});
  MultiHeadAttention attention({.d_model = d_model, .heads = h, .bias = false});
  initialise(table, 1);
  initialise(attention, 2);
  const Array ids = Array::of<std::int64_t>({1, 6}, {0, 1, 2, 3, 4, 5});

  fmt::print("1. From words to contexts\n");
  const Tensor x = table(ids);
  say("x, one row a word", reshape(x, {tokens, d_model}));
  const Tensor q = split_heads(linear(x, attention.q_proj().weight, {}), h);
  const Tensor k = split_heads(linear(x, attention.k_proj().weight, {}), h);
  const Tensor v = split_heads(linear(x, attention.v_proj().weight, {}), h);
  say("Q = x W_Q, K = x W_K, V = x W_V, each by head", q);
  const Tensor scores = mul(matmul(q, swap_axes(k, 1, 2)), 1 / std::sqrt(static_cast<double>(d_k)));
  say("scores = Q Kᵀ / √64, a 6×6 table a head", scores);
  const Tensor weights = softmax(scores, -1);
  say("weights = softmax of each row", weights);
  const Tensor z = matmul(weights, v);
  say("contexts = weights V", z);
  const Tensor concat = reshape(transpose(z, {1, 0, 2}), {1, tokens, d_model});
  say("heads side by side", reshape(concat, {tokens, d_model}));
  const Tensor out = (*attention.out)(concat);
  say("out = contexts W_O", reshape(out, {tokens, d_model}));
  const MultiHeadAttention::Result layer = attention(x, {.weights = true});
  fmt::print("  The layer does the same in one call; largest difference {:.0e}\n",
             largest_difference(layer.out, out));

  fmt::print("\n2. What \"The\" attends to in three heads\n  {:<10}", "");
  for (const std::string& word : words) fmt::print("{:>7}", word);
  fmt::print("\n");
  for (std::int64_t head = 0; head < 3; ++head) {
    fmt::print("  head {:<5}", head);
    for (std::int64_t j = 0; j < tokens; ++j)
      fmt::print("{:>7.3f}", layer.weights.value().at(head * tokens * tokens + j));
    fmt::print("\n");
  }

  fmt::print("\n3. Parameters: 4 · 512² = {} without biases\n", attention.parameter_count());
  const Tensor ten = Tensor::full({1, 10, d_model}, 0.5);
  fmt::print("  The same layer reads ten tokens: {} → {}\n", ten.shape(), attention(ten).out.shape());

  fmt::print("\n4. Causal: a word sees itself and what came before\n");
  const MultiHeadAttention::Result causal = attention(x, {.mask = Mask::causal(), .weights = true});
  double above = 0;
  double worst_sum = 0;
  for (std::int64_t row = 0; row < h * tokens; ++row) {
    double total = 0;
    for (std::int64_t j = 0; j < tokens; ++j) {
      const double w = causal.weights.value().at(row * tokens + j);
      total += w;
      if (j > row % tokens) above += w;
    }
    worst_sum = std::max(worst_sum, std::abs(total - 1));
  }
  fmt::print("  weights above the diagonal add up to {} (exactly), rows to 1 within {:.0e}\n", above,
             worst_sum);
  fmt::print("  head 0:\n");
  for (std::int64_t i = 0; i < tokens; ++i) {
    fmt::print("  {:<10}", words[static_cast<std::size_t>(i)]);
    for (std::int64_t j = 0; j < tokens; ++j)
      fmt::print("{:>7.3f}", causal.weights.value().at(i * tokens + j));
    fmt::print("\n");
  }

  fmt::print("\n5. What W_O is for\n");
  MultiHeadAttention without({.d_model = d_model, .heads = h, .bias = false, .out_proj = false});
  initialise(without, 2);
  fmt::print("  Without it: {} parameters; column c of the result comes from head c/64 alone,\n",
             without.parameter_count());
  fmt::print("  so no head can write where another one writes.\n");
  Tensor gate = Tensor::full({h}, 1);
  gate.change().data<float>()[0] = 0;
  const auto changed = [&](MultiHeadAttention& a) {
    const Tensor before = a(x).out;
    const GateScope off(a, gate);
    const Tensor after = a(x).out;
    std::int64_t columns = 0;
    for (std::int64_t c = 0; c < d_model; ++c) columns += before.value().at(c) != after.value().at(c) ? 1 : 0;
    return columns;
  };
  fmt::print("  Switching head 0 off changes {} of 512 columns without W_O, {} with it.\n", changed(without),
             changed(attention));
  MultiHeadAttention wide({.d_model = d_model, .heads = h, .d_k = 64, .d_v = 32, .bias = false});
  initialise(wide, 3);
  fmt::print(
      "  It also lets h·d_v differ from d_model: 8 heads of d_v = 32 give 256 columns, W_O brings them to "
      "{}.\n",
      wide(x).out.shape());
  return 0;
}
