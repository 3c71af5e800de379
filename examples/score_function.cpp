// A score function of one's own: a head looks at the key nearest to its query, −s·|q − k|² in place of
// q·k/√d, with a learned sharpness s per head. Made of operations on tensors it is differentiable; masks,
// biases, hooks, gates and telemetry work as ever. It gets q [B, heads, n_q, d_k] and k [B, heads, n_k, d_k];
// |q|² is the same for all keys and changes no weight. The task: give the token before.
#include <fmt/core.h>

#include "framework/autograd/backward.h"
#include "framework/core/random.h"
#include "framework/nn/attention.h"
#include "framework/ops/arithmetic.h"
#include "framework/ops/matmul.h"
#include "framework/ops/reduction.h"
#include "framework/ops/shaping.h"
#include "framework/optim/adamw.h"

using namespace headlab;

int main() {
  const Tensor sharpness(Array::full({1, 4, 1, 1}, 0.1), true);
  const auto nearness = [&](const Tensor& q, const Tensor& k) {
    const Tensor products = matmul(q, swap_axes(k, 2, 3));              // [B, heads, n_q, n_k]
    const Tensor squares = swap_axes(sum(mul(k, k), {3}, true), 2, 3);  // [B, heads, 1, n_k]
    return mul(sub(mul(products, 2), squares), sharpness);
  };
  const MultiHeadAttention::Rotary turned;
  MultiHeadAttention layer({.d_model = 16, .heads = 4, .rotary = turned, .score = nearness});
  initialise(layer, 1);
  fmt::print("attention_path(): {}\n", layer.attention_path());
  std::vector<OptimisedParameter> tensors{{"sharpness", sharpness}};
  for (const NamedParameter& p : layer.parameters()) tensors.push_back({p.path, p.parameter->tensor()});
  ParameterBuffer parameters(tensors);
  AdamW optimiser(parameters, {});
  Random random(1, Stream::statistics);
  for (int step = 0; step <= 400; ++step) {
    Array x({8, 17, 16});
    for (float& number : x.values<float>()) number = static_cast<float>(random.normal());
    parameters.clear_gradients();
    const Tensor out = layer(Tensor(x), {.mask = Mask::causal()}).out;
    const Tensor error = sub(slice(out, 1, 1, 17), slice(Tensor(x), 1, 0, 16));
    const Tensor loss = mean(mul(error, error));
    backward(loss);
    optimiser.step(1e-2);
    if (step % 100 == 0) fmt::print("step {:3}  loss {:.3f}\n", step, loss.item());
  }
  fmt::print("sharpness of head 0, 0.1 at first: {:.2f}\n", sharpness.value().at(0));
}
