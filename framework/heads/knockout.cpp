#include "framework/heads/knockout.h"

#include <cmath>

#include "framework/core/check.h"
#include "framework/core/significance.h"

namespace headlab {

namespace {
Array open_gate(const HeadLayer& layer) {
  if (!layer.gate()) return Array::full({layer.heads()}, 1);
  check(layer.gate().rank() == 1, "knock-out", "a gate of shape {} is in the way, needs [{}]",
        layer.gate().shape(), layer.heads());
  return layer.gate().value().copy();
}

double mean_of(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return values.empty() ? 0 : sum / static_cast<double>(values.size());
}

// Paired t: mean of the differences over its standard error, n − 1 degrees of freedom.
std::optional<double> paired_t(const std::vector<double>& differences) {
  if (differences.size() < fewest_sequences_to_test) return std::nullopt;
  const auto n = static_cast<double>(differences.size());
  const double mean = mean_of(differences);
  double squares = 0;
  for (const double difference : differences) squares += (difference - mean) * (difference - mean);
  if (!(squares > 0)) return std::nullopt;
  return student_t_two_sided(mean / std::sqrt(squares / (n - 1) / n), n - 1);
}

KnockoutLoss loss_of(HeadId id, const Answers& intact, const Answers& without, Accuracy kind) {
  KnockoutLoss loss;
  loss.head = id;
  loss.accuracy = intact.accuracy(kind) - without.accuracy(kind);
  for (std::size_t r = 0; r < without.readouts.size(); ++r) {
    loss.readouts.push_back(intact.readouts[r] - without.readouts[r]);
  }
  std::vector<double> differences;
  for (std::size_t i = 0; i < without.sequence_losses.size(); ++i) {
    differences.push_back(without.sequence_losses[i] - intact.sequence_losses[i]);
  }
  loss.loss = mean_of(differences);
  loss.p = paired_t(differences);
  return loss;
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
  matrix.answers = task.answer_names();
  matrix.intact = answers(model, task, seed, options.part, options.batch_size);
  for (const HeadId id : all_heads(model)) {
    const Answers without = answers_without(model, task, seed, std::span(&id, 1), options);
    matrix.heads.push_back(loss_of(id, matrix.intact, without, task.accuracy()));
  }
  std::vector<std::optional<double>> p_values;
  for (const KnockoutLoss& head : matrix.heads) p_values.push_back(head.p);
  const std::vector<std::optional<double>> adjusted = holm(p_values);
  const double least = 0.01 * mean_of(matrix.intact.sequence_losses);
  for (std::size_t i = 0; i < adjusted.size(); ++i) {
    KnockoutLoss& head = matrix.heads[i];
    head.adjusted_p = adjusted[i];
    head.matters = head.adjusted_p && *head.adjusted_p < 0.05 && std::abs(head.loss) >= least;
  }
  return matrix;
}

}  // namespace headlab
