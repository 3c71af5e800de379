#include "framework/command/bench_case.h"

#include <cmath>

#include "framework/autograd/backward.h"
#include "framework/command/bench_random.h"
#include "framework/command/memory.h"
#include "framework/nn/attention.h"
#include "framework/nn/step_context.h"
#include "framework/optim/clip.h"
#include "framework/train/evaluation.h"

namespace headlab {

TelemetryOptions bench_telemetry() { return {.offsets = {-7, -6, -5, -4, -3, -2, -1, 0}, .keys = {0}}; }

std::string_view name_of(BenchKind kind) {
  switch (kind) {
    case BenchKind::mha:
      return "mha";
    case BenchKind::train:
      return "train";
    case BenchKind::ops:
      break;
  }
  return "ops";
}

BenchCase attention_case(const AttentionShape& s, bool telemetry) {
  BenchCase result{.kind = BenchKind::mha, .name = s.name, .names = {s.name}};
  const double rows = static_cast<double>(s.batch) * static_cast<double>(s.tokens);
  const auto d = static_cast<double>(s.d_model);
  const double products = 4 * rows * static_cast<double>(s.tokens) * d * (s.causal ? 0.5 : 1);
  result.flops = 3 * (8 * rows * d * d + products);
  result.prepare = [s, telemetry]() -> std::function<void()> {
    check_fits(fmt::format("mha '{}'", s.name),
               MemoryEstimate().add({s.d_model, s.d_model}, 8).add({s.batch, s.tokens, s.d_model}, 12));
    const auto layer = std::make_shared<MultiHeadAttention>(
        MultiHeadAttention::Options{.d_model = s.d_model, .heads = s.heads});
    initialise(*layer, 0);
    if (telemetry) layer->want_telemetry(bench_telemetry());
    const Shape shape{s.batch, s.tokens, s.d_model};
    const Tensor x(random_numbers(shape, 1), true);
    std::vector<Tensor> wanted{x};
    for (const NamedParameter& named : layer->parameters()) wanted.push_back(named.parameter->tensor());
    return [layer, x, wanted, upstream = random_numbers(shape, 2),
            mask = s.causal ? Mask::causal() : Mask()]() mutable {
      for (Tensor& tensor : wanted) tensor.clear_grad();
      const Tensor out = [&] {
        const profile::Scope scope("forward");
        return (*layer)(x, {.mask = mask}).out;
      }();
      backward(out, {.seed = upstream});
    };
  };
  return result;
}

Needs training_needs(const TrainingShape& s) {
  Needs needs;
  needs.streams = {{"token", s.vocabulary, 0.02}};
  needs.readouts = {{"next", s.vocabulary}};
  needs.context = s.tokens;
  needs.layers = s.layers;
  needs.d_model = s.d_model;
  needs.heads = s.heads;
  needs.attention_bias = true;
  needs.mlp = 4 * s.d_model;
  needs.activation = Needs::Activation::gelu_tanh;
  needs.positions = Needs::Positions::learned;
  needs.position_std = 0.02;
  needs.weights = Needs::Weights::fixed;
  needs.smaller_residual_weights = true;
  needs.tied_readout = true;
  needs.readout_bias = false;
  return needs;
}

BenchTraining::BenchTraining(const TrainingShape& s, const Catalogue& catalogue, bool telemetry)
    : model_(catalogue.build(training_needs(s))) {
  initialise(*model_, 0);
  batch_.inputs = {random_tokens({s.batch, s.tokens}, s.vocabulary, 1)};
  batch_.targets = random_tokens({s.batch, s.tokens, 1}, s.vocabulary, 2);
  std::vector<OptimisedParameter> parameters;
  for (const NamedParameter& named : model_->parameters()) {
    parameters.push_back({named.path, named.parameter->tensor()});
  }
  buffer_ = std::make_unique<ParameterBuffer>(std::move(parameters));
  optimiser_ = std::make_unique<AdamW>(*buffer_);
  if (telemetry) {
    for (HeadLayer* layer : head_layers(*model_)) layer->want_telemetry(bench_telemetry());
  }
}

// As a step of train/trainer.h, without what surrounds it there: batches, schedule, observers, files.
double BenchTraining::step() {
  buffer_->clear_gradients();
  const TrainingStep scope({.step = steps_});
  const TaskLoss result = forward_loss(*model_, batch_);
  const double loss = result.loss.item();
  check(std::isfinite(loss), "bench", "the loss of step {} is {}", steps_ + 1, loss);
  backward(result.loss);
  const Clipping clipping = clipping_of(*buffer_, 1);
  if (clipping.finite) optimiser_->step(1e-3, clipping.scale);
  ++steps_;
  return loss;
}

BenchCase training_case(const TrainingShape& s, const Catalogue& catalogue, bool telemetry) {
  BenchCase result{.kind = BenchKind::train, .name = s.name, .names = {s.name}};
  const double rows = static_cast<double>(s.batch) * static_cast<double>(s.tokens);
  const auto d = static_cast<double>(s.d_model);
  const auto layers = static_cast<double>(s.layers);
  result.flops = rows * (6 * (12 * layers * d * d + static_cast<double>(s.vocabulary) * d) +
                         6 * layers * static_cast<double>(s.tokens) * d);
  result.prepare = [s, &catalogue, telemetry]() -> std::function<void()> {
    MemoryEstimate estimate;
    estimate.add({s.batch, s.tokens, s.layers, s.d_model}, 24).add({s.batch, s.tokens, s.vocabulary}, 3);
    estimate.add({}, 16 * training_needs(s).parameters(), 1);
    check_fits(fmt::format("train '{}'", s.name), estimate);
    const auto training = std::make_shared<BenchTraining>(s, catalogue, telemetry);
    return [training] { training->step(); };
  };
  return result;
}

}  // namespace headlab
