#include <algorithm>
#include <cmath>
#include <memory>

#include "framework/autograd/backward.h"
#include "framework/core/check.h"
#include "framework/core/random.h"
#include "framework/heads/frozen.h"
#include "framework/heads/prune.h"
#include "framework/ops/elementwise.h"
#include "framework/ops/operators.h"
#include "framework/ops/reduction.h"
#include "framework/ops/shaping.h"
#include "framework/optim/adamw.h"

namespace headlab {

namespace {

constexpr double temperature = 0.33;
constexpr double low = -0.1;  // γ
constexpr double high = 1.1;  // ζ

double offset() { return temperature * std::log(-low / high); }

// ln u − ln(1 − u) of one step; logs are ours, so every machine has the same bits.
Tensor noise(std::uint64_t seed, std::int64_t step, std::size_t layer, std::int64_t count) {
  Random random(seed, Stream::dropout,
                hash(hash(hash("hard concrete"), layer), static_cast<std::uint64_t>(step)));
  Array u({count});
  // f32 rounds numbers next to 1 to 1.
  for (float& value : u.values<float>()) {
    value = static_cast<float>(std::clamp(random.uniform(), 0x1p-20, 1 - 0x1p-20));
  }
  const Tensor uniform(u);
  const Tensor rest = 1 - uniform;
  const Tensor log_u = log(uniform);
  const Tensor log_rest = log(rest);
  return log_u - log_rest;
}

Tensor clipped(const Tensor& x) {
  const Tensor positive = relu(x);
  const Tensor below_one = relu(1 - positive);
  return 1 - below_one;
}

// One gate a group to one gate a head.
Tensor spread(const Tensor& gate, std::int64_t together) {
  if (together == 1) return gate;
  const Tensor column = reshape(gate, {gate.dim(0), 1});
  const Tensor wide = column * Tensor::full({1, together}, 1);
  return reshape(wide, {gate.dim(0) * together});
}

}  // namespace

LearnedGates learn_gates(Model& model, const Task& task, std::uint64_t seed, const GateLearning& options) {
  check(std::isfinite(options.lambda) && options.lambda >= 0, "gates", "λ {} is not a number from 0 on",
        options.lambda);
  check(options.steps >= 1, "gates", "{} steps, needs at least 1", options.steps);
  const ModeScope mode(model, false);
  const Frozen frozen(model);
  const std::vector<HeadLayer*> layers = head_layers(model);
  std::vector<OptimisedParameter> parameters;
  std::vector<std::int64_t> together;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    together.push_back(layers[i]->heads_together());
    const std::int64_t groups = layers[i]->heads() / together[i];
    parameters.push_back({fmt::format("{}", i), Tensor(Array::full({groups}, options.start), true), false});
  }
  ParameterBuffer buffer(parameters);
  AdamW optimiser(buffer, {.weight_decay = 0});
  std::vector<Tensor> before;
  for (const HeadLayer* layer : layers) before.push_back(layer->gate());

  LearnedGates result;
  const std::int64_t last = std::max<std::int64_t>(options.steps / 10, 1);
  for (std::int64_t step = 0; step < options.steps; ++step) {
    buffer.clear_gradients();
    Tensor penalty;
    std::vector<std::unique_ptr<GateScope>> scopes;
    for (std::size_t i = 0; i < layers.size(); ++i) {
      const Tensor log_alpha = parameters[i].tensor;
      if (log_alpha.size() == 0) continue;
      const Tensor noisy = noise(seed, step, i, log_alpha.size()) + log_alpha;
      const Tensor s = sigmoid(noisy * (1 / temperature));
      const Tensor stretched = s * (high - low) + low;
      Tensor gate = spread(clipped(stretched), together[i]);
      if (before[i]) gate = gate * before[i];
      scopes.push_back(std::make_unique<GateScope>(*layers[i], gate));
      const Tensor open = sum(sigmoid(log_alpha - offset()));
      const Tensor heads = open * static_cast<double>(together[i]);
      penalty = penalty ? penalty + heads : heads;
    }
    const Batch batch = task.batch(seed, options.first_batch + step, options.batch);
    const TaskLoss loss = forward_loss(model, batch);
    check(std::isfinite(loss.loss.item()), "gates", "the loss of step {} is {}", step + 1, loss.loss.item());
    const Tensor weighted = penalty * options.lambda;
    backward(loss.loss + weighted);
    optimiser.step(options.learning_rate);
    if (step >= options.steps - last) result.loss += loss.loss.item() / static_cast<double>(last);
  }
  for (std::size_t i = 0; i < layers.size(); ++i) {
    for (std::int64_t h = 0; h < layers[i]->heads(); ++h) {
      const double log_alpha = parameters[i].tensor.value().at(h / together[i]);
      const double s = 1 / (1 + std::exp(-log_alpha));
      result.gates.push_back(std::clamp(s * (high - low) + low, 0.0, 1.0));
      result.open += 1 / (1 + std::exp(-(log_alpha - offset())));
    }
  }
  return result;
}

}  // namespace headlab
