// Knock-out: what a model loses when the context of a head is zeroed or replaced before W_O.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "framework/heads/answers.h"
#include "framework/heads/head_sites.h"
#include "framework/heads/knockout_runs.h"

namespace headlab {

/// While it lives, these heads are knocked out: their gates are 0, those of all others are left as they were.
/// Errors: no such head; a layer whose gate is one per example.
class Knockout {
 public:
  Knockout(Model& model, std::span<const HeadId> heads);

 private:
  std::vector<std::unique_ptr<GateScope>> scopes_;
};

/// The answers without some heads.
Answers answers_without(Model& model, const Task& task, std::uint64_t seed, std::span<const HeadId> heads,
                        const KnockoutOptions& options = {});

/// What is lost without a head; negative where the model does better without it.
struct KnockoutLoss {
  HeadId head;
  double accuracy = 0;           ///< intact − without, as the task counts it, with teacher forcing
  std::vector<double> readouts;  ///< share of right answers lost, as Answers::readouts has them
  std::vector<double> kinds;     ///< the same per kind of answer, see token_kinds()
  /// Half of their 95 % t intervals over sequences; absent with fewer than two that have such answers.
  std::vector<std::optional<double>> readout_intervals, kind_intervals;
  double loss = 0;  ///< without − intact: mean over sequences, nats
  /// Half of the 95 % t interval of `loss` over sequences; absent with fewer than two.
  std::optional<double> interval;

  /// Two-sided paired t test over sequences that the loss changes, and Holm's correction over the heads;
  /// absent where there are fewer than 500 sequences or all differences are equal. It speaks of this model,
  /// not of other seeds.
  std::optional<double> p, adjusted_p;
  /// adjusted_p < 0.05, and the loss changes by at least 1 % of what it is intact.
  bool matters = false;
};
constexpr std::size_t fewest_sequences_to_test = 500;
/// Of one set of heads; `head` is left alone, and a correction over several is not made.
KnockoutLoss loss_between(const Answers& intact, const Answers& without, Accuracy kind);
/// Holm's correction over all of them, and which matter.
void correct_for_number(std::vector<KnockoutLoss>& losses, const Answers& intact);

/// Every head of a model by itself. A head that costs nothing may still do something that another head does
/// too: remove both to see.
struct KnockoutMatrix {
  Answers intact;
  std::vector<KnockoutLoss> heads;
  std::vector<std::string> answers = {};  ///< names of KnockoutLoss::readouts: Task::answer_names()
  KnockoutRuns runs = {};                 ///< its answers are not kept
};
KnockoutMatrix knockout_matrix(Model& model, const Task& task, std::uint64_t seed,
                               const KnockoutOptions& options = {});

}  // namespace headlab
