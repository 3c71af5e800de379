#include "framework/heads/answers.h"

#include <algorithm>
#include <cmath>

#include "framework/core/check.h"
#include "framework/heads/head_sites.h"

namespace headlab {

namespace {

struct Counts {
  std::vector<std::int64_t> right, scored;  // per read-out
  std::int64_t right_positions = 0, positions = 0, right_sequences = 0, sequences = 0;
  double loss = 0;
  std::vector<double> sequence_losses;
};

// −ln softmax(logits)[target] in f64.
double cross_entropy_of(const float* logits, std::int64_t classes, std::int64_t target) {
  const double top = static_cast<double>(*std::max_element(logits, logits + classes));
  double sum = 0;
  for (std::int64_t c = 0; c < classes; ++c) sum += std::exp(static_cast<double>(logits[c]) - top);
  return std::log(sum) + top - static_cast<double>(logits[target]);
}

void count(const Array& logits, const Batch& batch, const Needs& needs, Counts& counts) {
  const Shape& shape = batch.targets.shape();  // [B, T, R]
  const std::int64_t width = needs.logits();
  check(logits.dtype() == DType::f32 && logits.shape() == Shape{shape[0], shape[1], width}, "answers",
        "the model returned {} {} for {} examples of {} positions and {} classes", name_of(logits.dtype()),
        logits.shape(), shape[0], shape[1], width);
  const float* row = logits.data<float>();
  const std::int64_t* target = batch.targets.data<std::int64_t>();
  for (std::int64_t b = 0; b < shape[0]; ++b) {
    std::int64_t sequence_scored = 0;
    bool sequence_right = true;
    double sequence_loss = 0;
    for (std::int64_t t = 0; t < shape[1]; ++t) {
      bool position_scored = false;
      bool position_right = true;
      for (std::size_t r = 0; r < needs.readouts.size(); ++r, ++target) {
        const std::int64_t classes = needs.readouts[r].classes;
        if (*target != unscored) {
          const bool right = std::max_element(row, row + classes) - row == *target;
          ++counts.scored[r];
          counts.right[r] += right ? 1 : 0;
          ++sequence_scored;
          sequence_loss += cross_entropy_of(row, classes, *target);
          position_scored = true;
          position_right = position_right && right;
        }
        row += classes;
      }
      counts.positions += position_scored ? 1 : 0;
      counts.right_positions += position_scored && position_right ? 1 : 0;
      sequence_right = sequence_right && position_right;
    }
    if (sequence_scored == 0) continue;
    ++counts.sequences;
    counts.right_sequences += sequence_right ? 1 : 0;
    counts.loss += sequence_loss;
    counts.sequence_losses.push_back(sequence_loss / static_cast<double>(sequence_scored));
  }
}

double share(std::int64_t part, std::int64_t all) {
  return all > 0 ? static_cast<double>(part) / static_cast<double>(all) : 0;
}

}  // namespace

Answers answers(Model& model, const Task& task, std::uint64_t seed, HeldOut part, std::int64_t batch_size) {
  check(batch_size >= 1, "answers", "a batch size of {}, needs at least 1", batch_size);
  const Looking looking(model);
  Counts counts;
  counts.right.resize(model.needs().readouts.size());
  counts.scored.resize(model.needs().readouts.size());
  const std::vector<Probe> probes = task.probes();
  ProbeCounts probed;
  const std::int64_t size = task.held_out_size(part);
  for (std::int64_t first = 0; first < size; first += batch_size) {
    const Batch batch = task.held_out(seed, first, std::min(batch_size, size - first), part);
    const Array logits = model.logits(batch).value();
    count(logits, batch, model.needs(), counts);
    probed.add(logits, batch, probes, model.needs());
  }
  Answers result;
  std::int64_t right = 0;
  for (std::size_t r = 0; r < counts.right.size(); ++r) {
    result.readouts.push_back(share(counts.right[r], counts.scored[r]));
    right += counts.right[r];
    result.pairs += counts.scored[r];
  }
  if (!probes.empty()) result.readouts.clear();
  for (std::size_t p = 0; p < probes.size(); ++p) result.readouts.push_back(probed.share(p));
  result.positions = counts.positions;
  result.sequences = counts.sequences;
  result.pooled = share(right, result.pairs);
  result.position = share(counts.right_positions, counts.positions);
  result.sequence = share(counts.right_sequences, counts.sequences);
  result.loss = result.pairs > 0 ? counts.loss / static_cast<double>(result.pairs) : 0;
  result.sequence_losses = std::move(counts.sequence_losses);
  return result;
}

}  // namespace headlab
