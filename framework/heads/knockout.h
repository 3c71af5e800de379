// Knock-out: what a model loses when a head's context is zeroed before W_O.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "framework/heads/answers.h"
#include "framework/heads/head_sites.h"

namespace headlab {

/// While it lives, these heads are knocked out: their gates are 0, those of all others are left as they were.
/// Errors: no such head; a layer whose gate is one per example.
class Knockout {
 public:
  Knockout(Model& model, std::span<const HeadId> heads);

 private:
  std::vector<std::unique_ptr<GateScope>> scopes_;
};

struct KnockoutOptions {
  HeldOut part = HeldOut::score;
  std::int64_t batch_size = 64;
};

/// The answers without some heads.
Answers answers_without(Model& model, const Task& task, std::uint64_t seed, std::span<const HeadId> heads,
                        const KnockoutOptions& options = {});

/// What is lost without a head; negative where the model does better without it.
struct KnockoutLoss {
  HeadId head;
  double accuracy = 0;           ///< intact − without, as the task counts it, with teacher forcing
  std::vector<double> readouts;  ///< share of right answers lost, as Answers::readouts has them
  double loss = 0;               ///< without − intact: mean over sequences, nats

  /// Two-sided paired t test over sequences that the loss changes, and Holm's correction over the heads;
  /// absent where there are fewer than 500 sequences or all differences are equal. It speaks of this model,
  /// not of other seeds.
  std::optional<double> p, adjusted_p;
  /// adjusted_p < 0.05, and the loss changes by at least 1 % of what it is intact.
  bool matters = false;
};
constexpr std::size_t fewest_sequences_to_test = 500;

/// Every head of a model by itself. A head that costs nothing may still do something that another head does
/// too: remove both to see.
struct KnockoutMatrix {
  Answers intact;
  std::vector<KnockoutLoss> heads;
  std::vector<std::string> answers;  ///< names of KnockoutLoss::readouts: Task::answer_names()
};
KnockoutMatrix knockout_matrix(Model& model, const Task& task, std::uint64_t seed,
                               const KnockoutOptions& options = {});

}  // namespace headlab
