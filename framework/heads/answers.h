// A model's answers on the held-out set, with the right input before each (teacher forcing): which are right,
// and what they cost.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "framework/data/task.h"
#include "framework/heads/token_kinds.h"
#include "framework/train/evaluation.h"
#include "framework/train/model.h"

namespace headlab {

struct Answers {
  /// Share right, one for each of Task::answer_names(): of a probe's questions, else of a read-out's scored
  /// positions.
  std::vector<double> readouts;
  std::vector<double> kinds;  ///< share right, one per kind of answer, where the task has token_kinds()
  double pooled = 0;          ///< over all scored (position, read-out) pairs
  double position = 0;        ///< share of scored positions where every scored read-out is right
  double sequence = 0;        ///< share of sequences where every scored pair is right
  std::int64_t pairs = 0, positions = 0, sequences = 0;
  double loss = 0;                      ///< mean cross entropy over pairs, nats
  std::vector<double> sequence_losses;  ///< mean over a sequence's pairs, one per sequence with a scored pair
  /// Of every sequence how many answers are right, and how many there are: one list for each of `readouts`,
  /// then for each of `kinds`.
  std::vector<std::vector<std::int32_t>> sequence_right, sequence_scored;

  /// The one that the task counts. Under greedy decoding a sequence is right exactly when it is right with
  /// teacher forcing: each token follows from a right prefix.
  double accuracy(Accuracy kind) const {
    if (kind == Accuracy::probe) return readouts.at(0);
    return kind == Accuracy::pooled ? pooled : sequence;
  }
};

/// Sums up what a model says, batch by batch. The class with the largest logit is the answer, ties to the
/// lower class. Not thread-safe; the same bits for any number of threads.
class AnswerCounts {
 public:
  /// The needs must outlive it.
  AnswerCounts(const Needs& needs, const Task& task);
  /// f32 logits [B, T, needs.logits()]; or, without probes, [N, 1, needs.logits()] of the N scored_rows() of
  /// a batch alone.
  /// Error: another type or shape.
  void add(const Array& logits, const Batch& batch);
  Answers answers() const;

 private:
  const Needs* needs_;
  struct Rules {
    TokenKinds kinds;
    std::vector<Probe> probes;
  };
  std::shared_ptr<const Rules> rules_;
  ProbeCounts probed_;
  std::vector<std::int64_t> right_, scored_;            // per read-out
  std::vector<std::int64_t> kind_right_, kind_scored_;  // per kind
  std::int64_t right_positions_ = 0, positions_ = 0, right_sequences_ = 0;
  double loss_ = 0;
  std::vector<double> sequence_losses_;
  // Per read-out, then per kind.
  std::vector<std::vector<std::int32_t>> sequence_right_, sequence_scored_;
};

/// Indices b·T + t of the positions with a scored read-out, in order.
std::vector<std::int64_t> scored_rows(const Batch& batch);

/// In evaluation mode, without recording. The class with the largest logit is the answer, ties to the lower
/// class. Errors: logits of another shape than the needs imply; a batch size below 1.
Answers answers(Model& model, const Task& task, std::uint64_t seed, HeldOut part = HeldOut::score,
                std::int64_t batch_size = 64);

}  // namespace headlab
