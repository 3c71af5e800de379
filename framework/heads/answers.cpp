#include "framework/heads/answers.h"

#include <algorithm>

#include "framework/core/check.h"
#include "framework/heads/head_sites.h"

namespace headlab {

namespace {

struct Counts {
  std::vector<std::int64_t> right, scored;  // per read-out
  std::int64_t right_positions = 0, positions = 0, right_sequences = 0, sequences = 0;
};

void count(const Array& logits, const Batch& batch, const Needs& needs, Counts& counts) {
  const Shape& shape = batch.targets.shape();  // [B, T, R]
  const std::int64_t width = needs.logits();
  check(logits.dtype() == DType::f32 && logits.shape() == Shape{shape[0], shape[1], width}, "answers",
        "the model returned {} {} for {} examples of {} positions and {} classes", name_of(logits.dtype()),
        logits.shape(), shape[0], shape[1], width);
  const float* row = logits.data<float>();
  const std::int64_t* target = batch.targets.data<std::int64_t>();
  for (std::int64_t b = 0; b < shape[0]; ++b) {
    bool sequence_scored = false;
    bool sequence_right = true;
    for (std::int64_t t = 0; t < shape[1]; ++t) {
      bool position_scored = false;
      bool position_right = true;
      for (std::size_t r = 0; r < needs.readouts.size(); ++r, ++target) {
        const std::int64_t classes = needs.readouts[r].classes;
        if (*target != unscored) {
          const bool right = std::max_element(row, row + classes) - row == *target;
          ++counts.scored[r];
          counts.right[r] += right ? 1 : 0;
          position_scored = true;
          position_right = position_right && right;
        }
        row += classes;
      }
      counts.positions += position_scored ? 1 : 0;
      counts.right_positions += position_scored && position_right ? 1 : 0;
      sequence_scored = sequence_scored || position_scored;
      sequence_right = sequence_right && position_right;
    }
    counts.sequences += sequence_scored ? 1 : 0;
    counts.right_sequences += sequence_scored && sequence_right ? 1 : 0;
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
  const std::int64_t size = task.held_out_size(part);
  for (std::int64_t first = 0; first < size; first += batch_size) {
    const Batch batch = task.held_out(seed, first, std::min(batch_size, size - first), part);
    count(model.logits(batch).value(), batch, model.needs(), counts);
  }
  Answers result;
  std::int64_t right = 0;
  for (std::size_t r = 0; r < counts.right.size(); ++r) {
    result.readouts.push_back(share(counts.right[r], counts.scored[r]));
    right += counts.right[r];
    result.pairs += counts.scored[r];
  }
  result.positions = counts.positions;
  result.sequences = counts.sequences;
  result.pooled = share(right, result.pairs);
  result.position = share(counts.right_positions, counts.positions);
  result.sequence = share(counts.right_sequences, counts.sequences);
  return result;
}

}  // namespace headlab
