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

// Of the share Δ = Σ dᵢ / Σ mᵢ of answers that are lost, where sequence i loses dᵢ of its mᵢ. Sequences are
// what is drawn, not answers: linearised, Δ is the mean of eᵢ = dᵢ − Δ·mᵢ over the mean of mᵢ, so that its
// standard error is √(n/(n − 1) Σ eᵢ²) / Σ mᵢ. With the same m for all it is the t interval of dᵢ/m.
std::optional<double> share_interval(const std::vector<std::int32_t>& intact,
                                     const std::vector<std::int32_t>& without,
                                     const std::vector<std::int32_t>& scored) {
  double n = 0, answers = 0, lost = 0;
  for (std::size_t i = 0; i < scored.size(); ++i) {
    n += scored[i] > 0 ? 1 : 0;
    answers += scored[i];
    lost += intact[i] - without[i];
  }
  if (n < 2) return std::nullopt;
  double squares = 0;
  for (std::size_t i = 0; i < scored.size(); ++i) {
    const double away = intact[i] - without[i] - lost / answers * scored[i];
    squares += away * away;
  }
  return student_t_quantile(0.975, n - 1) * std::sqrt(n / (n - 1) * squares) / answers;
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

KnockoutLoss loss_between(const Answers& intact, const Answers& without, Accuracy kind) {
  KnockoutLoss loss;
  loss.accuracy = intact.accuracy(kind) - without.accuracy(kind);
  for (std::size_t r = 0; r < without.readouts.size(); ++r) {
    loss.readouts.push_back(intact.readouts[r] - without.readouts[r]);
  }
  for (std::size_t k = 0; k < without.kinds.size(); ++k) {
    loss.kinds.push_back(intact.kinds[k] - without.kinds[k]);
  }
  for (std::size_t c = 0; c < without.sequence_right.size(); ++c) {
    const std::optional<double> half =
        share_interval(intact.sequence_right[c], without.sequence_right[c], without.sequence_scored[c]);
    (c < without.readouts.size() ? loss.readout_intervals : loss.kind_intervals).push_back(half);
  }
  std::vector<double> differences;
  for (std::size_t i = 0; i < without.sequence_losses.size(); ++i) {
    differences.push_back(without.sequence_losses[i] - intact.sequence_losses[i]);
  }
  loss.loss = mean_of(differences);
  if (differences.size() < 2) return loss;
  // Paired t: mean of the differences over its standard error, n − 1 degrees of freedom.
  const auto n = static_cast<double>(differences.size());
  double squares = 0;
  for (const double difference : differences) squares += (difference - loss.loss) * (difference - loss.loss);
  const double error = std::sqrt(squares / (n - 1) / n);
  loss.interval = student_t_quantile(0.975, n - 1) * error;
  if (differences.size() >= fewest_sequences_to_test && error > 0) {
    loss.p = student_t_two_sided(loss.loss / error, n - 1);
  }
  return loss;
}

void correct_for_number(std::vector<KnockoutLoss>& losses, const Answers& intact) {
  std::vector<std::optional<double>> p_values;
  for (const KnockoutLoss& loss : losses) p_values.push_back(loss.p);
  const std::vector<std::optional<double>> adjusted = holm(p_values);
  const double least = 0.01 * mean_of(intact.sequence_losses);
  for (std::size_t i = 0; i < adjusted.size(); ++i) {
    losses[i].adjusted_p = adjusted[i];
    losses[i].matters = adjusted[i] && *adjusted[i] < 0.05 && std::abs(losses[i].loss) >= least;
  }
}

Answers answers_without(Model& model, const Task& task, std::uint64_t seed, std::span<const HeadId> heads,
                        const KnockoutOptions& options) {
  const HeadList set(heads.begin(), heads.end());
  return answers_without_each(model, task, seed, std::span(&set, 1), options).answers.front();
}

KnockoutMatrix knockout_matrix(Model& model, const Task& task, std::uint64_t seed,
                               const KnockoutOptions& options) {
  const std::vector<HeadId> heads = all_heads(model);
  std::vector<HeadList> sets{{}};
  for (const HeadId id : heads) sets.push_back({id});
  KnockoutMatrix matrix;
  matrix.answers = task.answer_names();
  matrix.runs = answers_without_each(model, task, seed, sets, options);
  matrix.intact = matrix.runs.answers.front();
  for (std::size_t i = 0; i < heads.size(); ++i) {
    matrix.heads.push_back(loss_between(matrix.intact, matrix.runs.answers[i + 1], task.accuracy()));
    matrix.heads.back().head = heads[i];
  }
  matrix.runs.answers.clear();
  correct_for_number(matrix.heads, matrix.intact);
  return matrix;
}

}  // namespace headlab
