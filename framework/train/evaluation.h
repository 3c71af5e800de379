// Loss and accuracy of a model on a task's held-out set.
#pragma once

#include <vector>

#include "framework/data/task.h"
#include "framework/train/model.h"
#include "framework/train/observer.h"

namespace headlab {

/// Mean cross entropy over all scored (position, read-out) pairs of a batch: logits [B, T, Σ classes] as a
/// model returns them. `counted` is how many pairs there were; with none the loss is 0.
struct TaskLoss {
  Tensor loss;
  std::int64_t counted = 0;
};
TaskLoss task_loss(const Tensor& logits, const Batch& batch, const Needs& needs);

/// In evaluation mode, without recording; the model's mode is put back. Batches are evaluated in order, their
/// sums merged in order. Encoder–decoder tasks with Greedy are decoded greedily for accuracy; the loss is
/// teacher-forced.
Evaluation evaluate(Model& model, const Task& task, std::uint64_t seed, HeldOut part = HeldOut::all,
                    std::int64_t batch_size = 64);

/// Accuracy per read-out over scored pairs (teacher-forced), for knock-out matrices: one share a read-out.
std::vector<double> readout_accuracy(Model& model, const Task& task, std::uint64_t seed,
                                     HeldOut part = HeldOut::all, std::int64_t batch_size = 64);

}  // namespace headlab
