// Knock-out: what a model loses when a head's context is zeroed before W_O.
#pragma once

#include <memory>
#include <span>
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

/// Accuracy lost (intact − without): negative where the model does better without the head.
struct KnockoutLoss {
  HeadId head;
  double accuracy = 0;           ///< as the task counts it, with teacher forcing
  std::vector<double> readouts;  ///< one per read-out
};

/// Every head of a model by itself. A head that costs nothing may still do something that another head does
/// too: remove both to see.
struct KnockoutMatrix {
  Answers intact;
  std::vector<KnockoutLoss> heads;
};
KnockoutMatrix knockout_matrix(Model& model, const Task& task, std::uint64_t seed,
                               const KnockoutOptions& options = {});

}  // namespace headlab
