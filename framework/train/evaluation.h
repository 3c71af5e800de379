// Loss and accuracy of a model on a task's held-out set.
#pragma once

#include <vector>

#include "framework/data/task.h"
#include "framework/train/model.h"
#include "framework/train/observer.h"

namespace headlab {

/// While it lives, a whole model is in training or evaluation mode; afterwards every part is as it was.
class ModeScope {
 public:
  ModeScope(Module& model, bool training);
  ~ModeScope();
  ModeScope(const ModeScope&) = delete;
  ModeScope& operator=(const ModeScope&) = delete;

 private:
  std::vector<std::pair<Module*, bool>> before_;
};

/// Mean cross entropy over all scored (position, read-out) pairs of a batch: logits [B, T, Σ classes] as a
/// model returns them. `counted` is how many pairs there were; with none the loss is 0. Errors: shapes that
/// do not fit; a target that is no class.
struct TaskLoss {
  Tensor loss;
  std::int64_t counted = 0;
};
TaskLoss task_loss(const Tensor& logits, const Batch& batch, const Needs& needs);
/// The same of what the model says of the batch. Keeps no logits but those that backward needs.
TaskLoss forward_loss(Model& model, const Batch& batch);

/// The scored pairs of a batch.
std::int64_t count_scored(const Batch& batch);

/// Right and counted answers to each probe, added up over batches. logits as task_loss() takes them. Error: a
/// probe of a read-out or class that is not there.
struct ProbeCounts {
  std::vector<std::int64_t> right, counted;
  /// The same of each sequence: one list a probe.
  std::vector<std::vector<std::int32_t>> sequence_right, sequence_counted;
  void add(const Array& logits, const Batch& batch, const std::vector<Probe>& probes, const Needs& needs);
  /// 0 where nothing was counted.
  double share(std::size_t probe) const;
};

/// In evaluation mode, without recording; the model's mode is put back. Batches are evaluated in order, their
/// sums merged in order. With Greedy the accuracy is that of greedy_decode(), the loss is teacher-forced.
/// Errors: batch_size < 1.
Evaluation evaluate(Model& model, const Task& task, std::uint64_t seed, HeldOut part = HeldOut::all,
                    std::int64_t batch_size = 64);

/// Accuracy per read-out over scored pairs (teacher-forced), for knock-out matrices: one share a read-out, 0
/// where nothing is scored.
std::vector<double> readout_accuracy(Model& model, const Task& task, std::uint64_t seed,
                                     HeldOut part = HeldOut::all, std::int64_t batch_size = 64);

/// What an encoder–decoder answers to the sources of a batch: i64 [B, T], T = Needs::context; after `end`
/// comes `unscored`. Ties go to the lowest token. Error: not an encoder–decoder with one read-out.
Array greedy_decode(Model& model, const Batch& batch, const Greedy& greedy);

}  // namespace headlab
