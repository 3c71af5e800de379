#include "framework/heads/knockout.h"

#include "framework/core/check.h"

namespace headlab {

namespace {
Array open_gate(const HeadLayer& layer) {
  if (!layer.gate()) return Array::full({layer.heads()}, 1);
  check(layer.gate().rank() == 1, "knock-out", "a gate of shape {} is in the way, needs [{}]",
        layer.gate().shape(), layer.heads());
  return layer.gate().value().copy();
}
}  // namespace

Knockout::Knockout(Model& model, std::span<const HeadId> heads) {
  const std::vector<HeadLayer*> layers = head_layers(model);
  std::vector<Array> gates(layers.size());
  for (const HeadId id : heads) {
    HeadLayer& layer = layer_of(model, id);
    Array& gate = gates[static_cast<std::size_t>(id.layer)];
    if (!gate) gate = open_gate(layer);
    gate.data<float>()[id.head] = 0;
  }
  for (std::size_t i = 0; i < layers.size(); ++i) {
    if (gates[i]) scopes_.push_back(std::make_unique<GateScope>(*layers[i], Tensor(gates[i])));
  }
}

Answers answers_without(Model& model, const Task& task, std::uint64_t seed, std::span<const HeadId> heads,
                        const KnockoutOptions& options) {
  const Knockout knockout(model, heads);
  return answers(model, task, seed, options.part, options.batch_size);
}

KnockoutMatrix knockout_matrix(Model& model, const Task& task, std::uint64_t seed,
                               const KnockoutOptions& options) {
  KnockoutMatrix matrix;
  matrix.intact = answers(model, task, seed, options.part, options.batch_size);
  for (const HeadId id : all_heads(model)) {
    const Answers without = answers_without(model, task, seed, std::span(&id, 1), options);
    KnockoutLoss loss{id, matrix.intact.accuracy(task.accuracy()) - without.accuracy(task.accuracy()), {}};
    for (std::size_t r = 0; r < without.readouts.size(); ++r) {
      loss.readouts.push_back(matrix.intact.readouts[r] - without.readouts[r]);
    }
    matrix.heads.push_back(std::move(loss));
  }
  return matrix;
}

}  // namespace headlab
