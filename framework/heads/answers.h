// A model's answers on the held-out set, with the right input before each (teacher forcing): which are right,
// and what they cost.
#pragma once

#include <cstdint>
#include <vector>

#include "framework/data/task.h"
#include "framework/train/model.h"

namespace headlab {

struct Answers {
  /// Share right, one for each of Task::answer_names(): of a probe's questions, else of a read-out's scored
  /// positions.
  std::vector<double> readouts;
  double pooled = 0;    ///< over all scored (position, read-out) pairs
  double position = 0;  ///< share of scored positions where every scored read-out is right
  double sequence = 0;  ///< share of sequences where every scored pair is right
  std::int64_t pairs = 0, positions = 0, sequences = 0;
  double loss = 0;                      ///< mean cross entropy over pairs, nats
  std::vector<double> sequence_losses;  ///< mean over a sequence's pairs, one per sequence with a scored pair

  /// The one that the task counts. Under greedy decoding a sequence is right exactly when it is right with
  /// teacher forcing: each token follows from a right prefix.
  double accuracy(Accuracy kind) const {
    if (kind == Accuracy::probe) return readouts.at(0);
    return kind == Accuracy::pooled ? pooled : sequence;
  }
};

/// In evaluation mode, without recording. The class with the largest logit is the answer, ties to the lower
/// class. Errors: logits of another shape than the needs imply; a batch size below 1.
Answers answers(Model& model, const Task& task, std::uint64_t seed, HeldOut part = HeldOut::score,
                std::int64_t batch_size = 64);

}  // namespace headlab
