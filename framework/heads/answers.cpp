#include "framework/heads/answers.h"

#include <algorithm>
#include <cmath>

#include "framework/core/check.h"
#include "framework/core/parallel.h"
#include "framework/heads/head_sites.h"

namespace headlab {

namespace {

// −ln softmax(logits)[target] in f64.
double cross_entropy_of(const float* logits, std::int64_t classes, std::int64_t target) {
  const double top = static_cast<double>(*std::max_element(logits, logits + classes));
  double sum = 0;
  for (std::int64_t c = 0; c < classes; ++c) sum += std::exp(static_cast<double>(logits[c]) - top);
  return std::log(sum) + top - static_cast<double>(logits[target]);
}

// What one sequence adds to the counts.
struct Sequence {
  std::vector<std::int64_t> right, scored;            // per read-out
  std::vector<std::int64_t> kind_right, kind_scored;  // per kind
  std::int64_t positions = 0, right_positions = 0, pairs = 0;
  double loss = 0;
  bool all_right = true;
};

// `compact`: the rows of logits are those of scored positions alone.
Sequence count(const float* row, const std::int64_t* target, std::int64_t length, const Needs& needs,
               const TokenKinds& kinds, bool compact) {
  const std::size_t readouts = needs.readouts.size();
  Sequence sum;
  sum.right.resize(readouts);
  sum.scored.resize(readouts);
  sum.kind_right.resize(kinds.names.size());
  sum.kind_scored.resize(kinds.names.size());
  for (std::int64_t t = 0; t < length; ++t) {
    bool position_scored = false;
    bool position_right = true;
    const float* logits = row;
    for (std::size_t r = 0; r < readouts; ++r, ++target) {
      const std::int64_t classes = needs.readouts[r].classes;
      if (*target != unscored) {
        const bool right = std::max_element(logits, logits + classes) - logits == *target;
        ++sum.scored[r];
        sum.right[r] += right ? 1 : 0;
        if (!kinds.names.empty()) {
          const std::size_t kind = kinds.of_class[static_cast<std::size_t>(*target)];
          ++sum.kind_scored[kind];
          sum.kind_right[kind] += right ? 1 : 0;
        }
        ++sum.pairs;
        sum.loss += cross_entropy_of(logits, classes, *target);
        position_scored = true;
        position_right = position_right && right;
      }
      logits += classes;
    }
    if (position_scored || !compact) row = logits;
    sum.positions += position_scored ? 1 : 0;
    sum.right_positions += position_scored && position_right ? 1 : 0;
    sum.all_right = sum.all_right && position_right;
  }
  return sum;
}

double share(std::int64_t part, std::int64_t all) {
  return all > 0 ? static_cast<double>(part) / static_cast<double>(all) : 0;
}

}  // namespace

std::vector<std::int64_t> scored_rows(const Batch& batch) {
  const std::int64_t readouts = batch.targets.dim(2);
  const std::int64_t* target = batch.targets.data<std::int64_t>();
  std::vector<std::int64_t> rows;
  for (std::int64_t i = 0; i < batch.targets.size(); ++i) {
    if (target[i] != unscored && (rows.empty() || rows.back() != i / readouts)) rows.push_back(i / readouts);
  }
  return rows;
}

AnswerCounts::AnswerCounts(const Needs& needs, const Task& task)
    : needs_(&needs),
      rules_(std::make_shared<const Rules>(Rules{token_kinds(task), task.probes()})),
      right_(needs.readouts.size()),
      scored_(needs.readouts.size()),
      kind_right_(rules_->kinds.names.size()),
      kind_scored_(rules_->kinds.names.size()),
      sequence_right_(right_.size() + kind_right_.size()),
      sequence_scored_(sequence_right_.size()) {}

void AnswerCounts::add(const Array& logits, const Batch& batch) {
  const Shape& shape = batch.targets.shape();  // [B, T, R]
  const std::int64_t length = shape[1];
  const std::int64_t width = needs_->logits();
  check(logits.dtype() == DType::f32 && logits.rank() == 3 && logits.dim(2) == width, "answers",
        "the model returned {} {} for {} examples of {} positions and {} classes", name_of(logits.dtype()),
        logits.shape(), shape[0], length, width);
  const bool compact = logits.shape() != Shape{shape[0], length, width};
  // Where the logits of each sequence begin.
  std::vector<std::int64_t> first(static_cast<std::size_t>(shape[0]) + 1);
  for (std::int64_t b = 0; b < shape[0]; ++b) first[static_cast<std::size_t>(b) + 1] = (b + 1) * length;
  if (compact) {
    const std::vector<std::int64_t> rows = scored_rows(batch);
    std::size_t row = 0;
    for (std::size_t b = 0; b < first.size(); ++b) {
      while (row < rows.size() && rows[row] < static_cast<std::int64_t>(b) * length) ++row;
      first[b] = static_cast<std::int64_t>(row);
    }
  }
  check(first.back() == logits.dim(0) * logits.dim(1), "answers",
        "the model returned {} {} for {} examples of {} positions and {} classes", name_of(logits.dtype()),
        logits.shape(), shape[0], length, width);

  if (!rules_->probes.empty()) {
    check(!compact, "answers", "probes ask at positions that are not scored: all logits are needed");
    probed_.add(logits, batch, rules_->probes, *needs_);
  }
  std::vector<Sequence> sequences(static_cast<std::size_t>(shape[0]));
  const std::int64_t* targets = batch.targets.data<std::int64_t>();
  parallel_for(shape[0], 8, {.flops = 20 * static_cast<double>(length * width)},
               [&](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t b = begin; b < end; ++b) {
                   const auto i = static_cast<std::size_t>(b);
                   sequences[i] =
                       count(logits.data<float>() + first[i] * width, targets + b * length * shape[2], length,
                             *needs_, rules_->kinds, compact);
                 }
               });
  for (const Sequence& sequence : sequences) {
    const auto keep = [&](std::size_t column, std::int64_t right, std::int64_t scored) {
      sequence_right_[column].push_back(static_cast<std::int32_t>(right));
      sequence_scored_[column].push_back(static_cast<std::int32_t>(scored));
    };
    for (std::size_t r = 0; r < right_.size(); ++r) {
      right_[r] += sequence.right[r];
      scored_[r] += sequence.scored[r];
      keep(r, sequence.right[r], sequence.scored[r]);
    }
    for (std::size_t k = 0; k < kind_right_.size(); ++k) {
      kind_right_[k] += sequence.kind_right[k];
      kind_scored_[k] += sequence.kind_scored[k];
      keep(right_.size() + k, sequence.kind_right[k], sequence.kind_scored[k]);
    }
    positions_ += sequence.positions;
    right_positions_ += sequence.right_positions;
    if (sequence.pairs == 0) continue;
    right_sequences_ += sequence.all_right ? 1 : 0;
    loss_ += sequence.loss;
    sequence_losses_.push_back(sequence.loss / static_cast<double>(sequence.pairs));
  }
}

Answers AnswerCounts::answers() const {
  Answers result;
  std::int64_t right = 0;
  for (std::size_t r = 0; r < right_.size(); ++r) {
    result.readouts.push_back(share(right_[r], scored_[r]));
    right += right_[r];
    result.pairs += scored_[r];
  }
  if (!rules_->probes.empty()) result.readouts.clear();
  for (std::size_t p = 0; p < rules_->probes.size(); ++p) result.readouts.push_back(probed_.share(p));
  for (std::size_t k = 0; k < kind_right_.size(); ++k) {
    result.kinds.push_back(share(kind_right_[k], kind_scored_[k]));
  }
  result.positions = positions_;
  result.sequences = std::ssize(sequence_losses_);
  result.pooled = share(right, result.pairs);
  result.position = share(right_positions_, positions_);
  result.sequence = share(right_sequences_, result.sequences);
  result.loss = result.pairs > 0 ? loss_ / static_cast<double>(result.pairs) : 0;
  result.sequence_losses = sequence_losses_;
  result.sequence_right = sequence_right_;
  result.sequence_scored = sequence_scored_;
  if (!rules_->probes.empty()) {
    const auto readouts = static_cast<std::ptrdiff_t>(right_.size());
    const auto replace = [&](auto& lists, const auto& probed) {
      lists.erase(lists.begin(), lists.begin() + readouts);
      lists.insert(lists.begin(), probed.begin(), probed.end());
    };
    replace(result.sequence_right, probed_.sequence_right);
    replace(result.sequence_scored, probed_.sequence_counted);
  }
  return result;
}

Answers answers(Model& model, const Task& task, std::uint64_t seed, HeldOut part, std::int64_t batch_size) {
  check(batch_size >= 1, "answers", "a batch size of {}, needs at least 1", batch_size);
  const Looking looking(model);
  AnswerCounts counts(model.needs(), task);
  const std::int64_t size = task.held_out_size(part);
  for (std::int64_t first = 0; first < size; first += batch_size) {
    const Batch batch = task.held_out(seed, first, std::min(batch_size, size - first), part);
    counts.add(model.logits(batch).value(), batch);
  }
  return counts.answers();
}

}  // namespace headlab
