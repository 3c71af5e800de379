// Task: a generator of examples whose answers are known, with what it needs of a model, how to train it, and
// where a head should look. A new task is one subclass; the command, sweeps and reports need nothing else.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "framework/core/random.h"
#include "framework/data/batch.h"
#include "framework/data/claim.h"
#include "framework/data/needs.h"
#include "framework/data/recipe.h"

namespace headlab {

class TextVocabulary;

/// pooled: the share of right classes over all scored (position, read-out) pairs. whole_sequence: the share
/// of examples in which every scored pair is right; with `Greedy` below, under greedy decoding. probe: the
/// share of right answers to the task's first probe.
enum class Accuracy { pooled, whole_sequence, probe };

/// How an encoder–decoder's answer is produced: feed `start`, take the largest logit, feed it, until `end` or
/// Needs::context tokens. The answer is right if it equals the targets, `end` included.
struct Greedy {
  std::int64_t start = 0;
  std::int64_t end = 0;
};

/// A measured level of the task's ladder: mean accuracy over seeds after Task::measured_steps().
struct Rung {
  std::int64_t heads = 0;
  double accuracy = 0;
};

/// The held-out set as a whole, or its halves: choose best offset and role on one, score them on the other.
enum class HeldOut { all, choose, score };

/// All functions are const, thread-safe and pure: the same arguments give the same bits on every machine.
class Task {
 public:
  virtual ~Task() = default;

  virtual std::string name() const = 0;
  /// What it shows, in one line.
  virtual std::string shows() const = 0;
  virtual Needs needs() const = 0;
  virtual Recipe recipe() const = 0;
  virtual std::vector<HeadTarget> head_targets() const { return {}; }

  virtual std::vector<Probe> probes() const { return {}; }
  /// What right answers are counted by: the probes, where there are any, else the read-outs.
  std::vector<std::string> answer_names() const;

  virtual Accuracy accuracy() const { return Accuracy::pooled; }
  virtual std::optional<Greedy> greedy() const { return std::nullopt; }
  /// For display beside measured accuracies; empty if nobody has measured.
  virtual std::vector<Rung> ladder() const { return {}; }
  /// Steps of the trainings behind ladder(), by the recipe but for their number.
  virtual std::int64_t measured_steps() const { return recipe().steps; }
  /// What holds of models trained on it, for `headlab reproduce`.
  virtual std::vector<Claim> claims() const { return {}; }
  /// Accuracy of guessing without attention, in the unit of accuracy(); of the best fixed offset as an answer
  /// to the head targets (pooled over them), where one is known.
  virtual double chance() const = 0;
  virtual std::optional<double> best_fixed_offset() const { return std::nullopt; }

  /// One id as text. Error: no such stream or id.
  std::string token_text(std::size_t stream, std::int64_t id) const;
  /// Ids of the stream read last that separate rather than say something; and the one that starts a sequence.
  virtual std::vector<std::int64_t> delimiters() const { return {}; }
  virtual std::optional<std::int64_t> start_token() const { return std::nullopt; }
  /// Tasks over text only, else nullptr. Lives as long as the task.
  virtual const TextVocabulary* vocabulary() const { return nullptr; }

  /// Rows [first, first + size) of training batch `index`. Row r is a function of (seed, index, r) alone: a
  /// batch cut into shards is the same batch, and resuming needs only the number of the step.
  Batch batch(std::uint64_t seed, std::int64_t index, std::int64_t size, std::int64_t first = 0) const;

  /// Sequences of the held-out set, never seen in training; 1024 unless a task says otherwise.
  std::int64_t held_out_size(HeldOut part = HeldOut::all) const;
  /// Sequences [first, first + size) of that part. Error: beyond its end.
  Batch held_out(std::uint64_t seed, std::int64_t first, std::int64_t size,
                 HeldOut part = HeldOut::all) const;

  /// The labels of one example for display, one per position: texts of all streams joined; for an
  /// encoder–decoder those of the decoder's input, or of the source.
  std::vector<std::string> labels(const Batch& batch, std::int64_t example, bool source = false) const;

 protected:
  /// Arrays of the shapes that needs() and head_targets() imply: inputs 0, source_valid 1, the rest
  /// `unscored`.
  Batch blank(std::int64_t size) const;
  /// Fills one row of a blank batch with a fresh example.
  virtual void write(Batch& batch, std::int64_t row, Random& random) const = 0;
  /// Fills one row with sequence `index` of the held-out set; by default a fresh example from the evaluation
  /// stream, which is independent of the training stream.
  virtual void write_held_out(Batch& batch, std::int64_t row, std::uint64_t seed, std::int64_t index) const;
  virtual std::int64_t held_out_sequences() const { return 1024; }
  /// One id, known to be in range, as text; of patches: the place of one, from 0.
  virtual std::string spell(std::size_t stream, std::int64_t id) const = 0;
};

}  // namespace headlab
