// A training loop with the public API: data, model, loss, backward, clip, update.
#include <fmt/core.h>

#include "framework/autograd/backward.h"
#include "framework/data/offsets.h"
#include "framework/optim/adamw.h"
#include "framework/optim/clip.h"
#include "framework/optim/schedule.h"
#include "framework/train/evaluation.h"
#include "models/decoder.h"

using namespace headlab;

int main() {
  const OffsetsTask task;       // at each position: which token stood 1, 2, …, 8 places before?
  Decoder model(task.needs());  // one attention layer with 8 heads
  constexpr std::uint64_t seed = 0;
  initialise(model, seed);

  std::vector<OptimisedParameter> tensors;
  for (const NamedParameter& p : model.parameters()) {
    tensors.push_back({p.path, p.parameter->tensor(), p.parameter->role() == Role::matrix});
  }
  ParameterBuffer parameters(tensors);
  AdamW optimiser(parameters, {.beta1 = 0.9, .beta2 = 0.98, .weight_decay = 0.1});
  constexpr std::int64_t steps = 300;
  const Schedule schedule(
      {.peak = 1e-2, .floor = 5e-4, .warm_up = 15, .total = steps, .decay = Decay::cosine});

  for (std::int64_t step = 0; step < steps; ++step) {
    const Batch batch = task.batch(seed, step, 32);
    parameters.clear_gradients();
    const Tensor logits = model.logits(batch);
    const Tensor loss = task_loss(logits, batch, model.needs()).loss;
    backward(loss);
    clip_gradients(parameters, 1.0);
    optimiser.step(schedule.rate(step));
    if (step % 50 == 49) fmt::print("step {:3}  loss {:.4f}\n", step + 1, loss.item());
  }
  const Evaluation held_out = evaluate(model, task, seed);
  fmt::print("held out: loss {:.4f}, accuracy {:.3f}\n", held_out.loss, held_out.accuracy);
  return 0;
}
