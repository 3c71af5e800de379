#include "framework/train/evaluation.h"

#include <algorithm>

#include "framework/core/check.h"
#include "framework/core/profile.h"
#include "framework/ops/cross_entropy.h"
#include "framework/ops/operators.h"
#include "framework/ops/shaping.h"

namespace headlab {

namespace {

/// The class with the largest logit, ties to the lowest, NaN never; -1 when all are NaN.
template <class T>
std::int64_t largest(const T* logits, std::int64_t classes) {
  std::int64_t best = -1;
  for (std::int64_t c = 0; c < classes; ++c) {
    if (best < 0 ? logits[c] == logits[c] : logits[c] > logits[best]) best = c;
  }
  return best;
}

/// Calls f(example, read-out, right) for every scored pair, in order.
template <class F>
void for_each_scored(const Array& logits, const Batch& batch, const Needs& needs, const F& f) {
  dispatch(logits.dtype(), "evaluate", [&](auto zero) {
    using T = decltype(zero);
    const T* row = logits.data<T>();
    const std::int64_t* target = batch.targets.data<std::int64_t>();
    for (std::int64_t b = 0; b < batch.targets.dim(0); ++b) {
      for (std::int64_t t = 0; t < batch.targets.dim(1); ++t) {
        for (std::size_t r = 0; r < needs.readouts.size(); ++r, ++target) {
          const std::int64_t classes = needs.readouts[r].classes;
          if (*target != unscored) f(b, r, largest(row, classes) == *target);
          row += classes;
        }
      }
    }
  });
}

/// Calls f(batch, logits) for every batch of the held-out set.
template <class F>
void for_each_batch(Model& model, const Task& task, std::uint64_t seed, HeldOut part, std::int64_t batch_size,
                    const F& f) {
  check(batch_size >= 1, "evaluate", "batch size {} is below 1", batch_size);
  const NoGrad no_grad;
  const ModeScope mode(model, false);
  const std::int64_t sequences = task.held_out_size(part);
  for (std::int64_t first = 0; first < sequences; first += batch_size) {
    const Batch batch = task.held_out(seed, first, std::min(batch_size, sequences - first), part);
    f(batch, model.logits(batch));
  }
}

/// Whether the decoder's input is what greedy decoding would feed as long as every answer is right. Then an
/// answer is right exactly if every teacher-forced one is: up to the first mistake both see the same input,
/// and a causal decoder's row depends on nothing later, bit for bit.
bool feeds_targets(const Batch& batch, const Greedy& greedy) {
  const Array& input = batch.inputs[1];
  const std::int64_t length = input.dim(1);
  if (batch.targets.dim(1) != length || batch.targets.dim(2) != 1) return false;
  for (std::int64_t b = 0; b < batch.size(); ++b) {
    const std::int64_t* fed = example_of(input, b);
    const std::int64_t* target = example_of(batch.targets, b);
    std::int64_t scored = 0;
    while (scored < length && target[scored] != unscored) {
      const std::int64_t right = scored == 0 ? greedy.start : target[scored - 1];
      if (fed[scored] != right || (scored > 0 && right == greedy.end)) return false;
      ++scored;
    }
    if (scored == 0) return false;
    if (std::any_of(target + scored, target + length, [](auto x) { return x != unscored; })) return false;
    if (scored < length && target[scored - 1] != greedy.end) return false;
  }
  return true;
}

std::int64_t right_answers(const Array& answers, const Batch& batch) {
  std::int64_t right = 0;
  for (std::int64_t b = 0; b < batch.size(); ++b) {
    const std::int64_t* answer = example_of(answers, b);
    const std::int64_t* target = example_of(batch.targets, b);
    right += std::equal(answer, answer + answers.dim(1), target) ? 1 : 0;
  }
  return right;
}

std::int64_t right_sequences(const Array& logits, const Batch& batch, const Needs& needs) {
  std::vector<bool> right(static_cast<std::size_t>(batch.size()), true);
  for_each_scored(logits, batch, needs, [&](std::int64_t b, std::size_t, bool is_right) {
    if (!is_right) right[static_cast<std::size_t>(b)] = false;
  });
  return std::count(right.begin(), right.end(), true);
}

}  // namespace

ModeScope::ModeScope(Module& model, bool training) {
  model.visit([&](Module& module) { before_.emplace_back(&module, module.training()); });
  model.train(training);
}

ModeScope::~ModeScope() {
  // Parents come first and set everything below them, so children have the last word.
  for (const auto& entry : before_) {
    if (entry.first->training() != entry.second) entry.first->train(entry.second);
  }
}

TaskLoss task_loss(const Tensor& logits, const Batch& batch, const Needs& needs) {
  const Array& targets = batch.targets;
  const auto readouts = static_cast<std::int64_t>(needs.readouts.size());
  check(readouts >= 1, "task_loss", "there is no read-out");
  check(logits.rank() == 3 && targets.rank() == 3 && targets.dim(2) == readouts &&
            logits.dim(0) == targets.dim(0) && logits.dim(1) == targets.dim(1) &&
            logits.dim(2) == needs.logits(),
        "task_loss", "logits {} and targets {} for {} read-outs of {} classes in all", logits.shape(),
        targets.shape(), readouts, needs.logits());
  const std::int64_t classes = needs.readouts[0].classes;
  if (std::all_of(needs.readouts.begin(), needs.readouts.end(),
                  [&](const auto& r) { return r.classes == classes; })) {
    const Tensor rows = reshape(logits, {logits.dim(0), logits.dim(1), readouts, classes});
    const CrossEntropy result = cross_entropy(rows, targets, {.ignore = unscored});
    return {result.loss, result.counted};
  }

  // Mean over all pairs = Σ_r counted_r / counted · mean_r.
  TaskLoss total{Tensor(), count_scored(batch)};
  std::int64_t from = 0;
  for (std::int64_t r = 0; r < readouts; ++r) {
    const std::int64_t to = from + needs.readouts[static_cast<std::size_t>(r)].classes;
    Array own({targets.dim(0), targets.dim(1)}, DType::i64);
    for (std::int64_t i = 0; i < own.size(); ++i) {
      own.data<std::int64_t>()[i] = targets.data<std::int64_t>()[i * readouts + r];
    }
    const Tensor part = slice(logits, 2, from, to);
    const CrossEntropy result = cross_entropy(part, own, {.ignore = unscored});
    const double share =
        total.counted == 0 ? 0 : static_cast<double>(result.counted) / static_cast<double>(total.counted);
    const Tensor weighted = result.loss * share;
    total.loss = total.loss ? total.loss + weighted : weighted;
    from = to;
  }
  return total;
}

TaskLoss forward_loss(Model& model, const Batch& batch) {
  const profile::Scope scope("forward");
  const Tensor logits = model.logits(batch);
  return task_loss(logits, batch, model.needs());
}

std::int64_t count_scored(const Batch& batch) {
  const auto targets = batch.targets.values<std::int64_t>();
  return std::ssize(targets) - std::count(targets.begin(), targets.end(), unscored);
}

void ProbeCounts::add(const Array& logits, const Batch& batch, const std::vector<Probe>& probes,
                      const Needs& needs) {
  right.resize(probes.size());
  counted.resize(probes.size());
  sequence_right.resize(probes.size());
  sequence_counted.resize(probes.size());
  const auto sequences = static_cast<std::size_t>(batch.size());
  for (std::size_t p = 0; p < probes.size(); ++p) {
    const Probe& probe = probes[p];
    const auto readout = static_cast<std::size_t>(probe.readout);
    check(probe.readout >= 0 && readout < needs.readouts.size() && !probe.classes.empty() &&
              probe.classes.size() == probe.answers.size(),
          "probe", "{}: read-out {} with {} classes and {} answers", probe.name, probe.readout,
          probe.classes.size(), probe.answers.size());
    std::int64_t first = 0;
    for (std::size_t r = 0; r < readout; ++r) first += needs.readouts[r].classes;
    for (const std::int64_t c : probe.classes) {
      check(c >= 0 && c < needs.readouts[readout].classes, "probe", "{}: class {} is not in 0 to {}",
            probe.name, c, needs.readouts[readout].classes - 1);
    }
    const std::span<const std::int64_t> answers = batch.probes.at(p).values<std::int64_t>();
    const std::size_t before = sequence_right[p].size();
    sequence_right[p].resize(before + sequences);
    sequence_counted[p].resize(before + sequences);
    const std::size_t length = sequences > 0 ? answers.size() / sequences : 0;
    dispatch(logits.dtype(), "probe", [&](auto zero) {
      using T = decltype(zero);
      for (std::size_t i = 0; i < answers.size(); ++i) {
        if (answers[i] == unscored) continue;
        const T* row = logits.data<T>() + static_cast<std::int64_t>(i) * needs.logits() + first;
        std::size_t best = 0;
        for (std::size_t c = 1; c < probe.classes.size(); ++c) {
          if (row[probe.classes[c]] > row[probe.classes[best]]) best = c;
        }
        const int hit = probe.answers[best] == answers[i] ? 1 : 0;
        ++counted[p];
        right[p] += hit;
        ++sequence_counted[p][before + i / length];
        sequence_right[p][before + i / length] += hit;
      }
    });
  }
}

double ProbeCounts::share(std::size_t probe) const {
  if (probe >= counted.size() || counted[probe] == 0) return 0;
  return static_cast<double>(right[probe]) / static_cast<double>(counted[probe]);
}

Evaluation evaluate(Model& model, const Task& task, std::uint64_t seed, HeldOut part,
                    std::int64_t batch_size) {
  const profile::Scope scope("evaluation");
  const std::optional<Greedy> greedy = task.greedy();
  const bool sequences = task.accuracy() == Accuracy::whole_sequence;
  const bool probed = task.accuracy() == Accuracy::probe;
  const std::vector<Probe> probes = probed ? task.probes() : std::vector<Probe>();
  check(!probed || !probes.empty(), "evaluate", "{} counts a probe and has none", task.name());
  ProbeCounts probe_counts;
  double loss = 0;
  std::int64_t counted = 0;
  std::int64_t scored = 0;
  std::int64_t right = 0;
  for_each_batch(model, task, seed, part, batch_size, [&](const Batch& batch, const Tensor& logits) {
    const TaskLoss result = task_loss(logits, batch, model.needs());
    loss += result.loss.item() * static_cast<double>(result.counted);
    counted += result.counted;
    if (probed) {
      probe_counts.add(logits.value(), batch, {probes.front()}, model.needs());
    } else if (!sequences) {
      for_each_scored(logits.value(), batch, model.needs(),
                      [&](std::int64_t, std::size_t, bool is_right) { right += is_right ? 1 : 0; });
      scored += result.counted;
    } else {
      right += greedy && !feeds_targets(batch, *greedy)
                   ? right_answers(greedy_decode(model, batch, *greedy), batch)
                   : right_sequences(logits.value(), batch, model.needs());
      scored += batch.size();
    }
  });
  if (probed) {
    right = probe_counts.right.front();
    scored = probe_counts.counted.front();
  }
  const auto mean = [](double sum, std::int64_t n) { return n == 0 ? 0 : sum / static_cast<double>(n); };
  return {mean(loss, counted), mean(static_cast<double>(right), scored), scored};
}

std::vector<double> readout_accuracy(Model& model, const Task& task, std::uint64_t seed, HeldOut part,
                                     std::int64_t batch_size) {
  const std::size_t readouts = model.needs().readouts.size();
  std::vector<double> right(readouts);
  std::vector<double> scored(readouts);
  for_each_batch(model, task, seed, part, batch_size, [&](const Batch& batch, const Tensor& logits) {
    for_each_scored(logits.value(), batch, model.needs(), [&](std::int64_t, std::size_t r, bool is_right) {
      right[r] += is_right ? 1 : 0;
      scored[r] += 1;
    });
  });
  for (std::size_t r = 0; r < readouts; ++r) right[r] = scored[r] == 0 ? 0 : right[r] / scored[r];
  return right;
}

Array greedy_decode(Model& model, const Batch& batch, const Greedy& greedy) {
  const Needs& needs = model.needs();
  check(needs.architecture == Architecture::encoder_decoder && needs.readouts.size() == 1, "greedy_decode",
        "needs an encoder–decoder with one read-out");
  const NoGrad no_grad;
  const ModeScope mode(model, false);
  const std::int64_t examples = batch.inputs[0].dim(0);
  const std::int64_t classes = needs.logits();
  Array answers = Array::full({examples, needs.context}, static_cast<double>(unscored), DType::i64);
  std::vector<bool> ended(static_cast<std::size_t>(examples), false);
  Batch fed = batch;
  for (std::int64_t t = 0; t < needs.context; ++t) {
    // The answers so far behind `start`; those that have ended are fed `end`.
    fed.inputs[1] = Array({examples, t + 1}, DType::i64);
    for (std::int64_t b = 0; b < examples; ++b) {
      std::int64_t* input = example_of(fed.inputs[1], b);
      const std::int64_t* answer = example_of(answers, b);
      input[0] = greedy.start;
      for (std::int64_t i = 0; i < t; ++i) input[i + 1] = answer[i] == unscored ? greedy.end : answer[i];
    }
    const Array logits = model.logits(fed).value();
    for (std::int64_t b = 0; b < examples; ++b) {
      if (ended[static_cast<std::size_t>(b)]) continue;
      const std::int64_t token = dispatch(logits.dtype(), "greedy_decode", [&](auto zero) {
        using T = decltype(zero);
        return largest(logits.data<T>() + (b * (t + 1) + t) * classes, classes);
      });
      check(token >= 0, "greedy_decode", "the logits of example {} at position {} are all NaN", b, t);
      example_of(answers, b)[t] = token;
      ended[static_cast<std::size_t>(b)] = token == greedy.end;
    }
    if (std::all_of(ended.begin(), ended.end(), [](bool e) { return e; })) break;
  }
  return answers;
}

}  // namespace headlab
