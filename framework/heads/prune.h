// Pruning: a model without some of its heads, not only with their gates closed.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "framework/core/array.h"
#include "framework/heads/knockout_runs.h"

namespace headlab {

/// The ⌈share · heads⌉ heads of the largest values, in the order of heads; ties go to the earlier head. Heads
/// that share keys and values (grouped queries) stay or go together, by the sum of their values: then as many
/// groups as it takes. Errors: a share outside (0, 1]; not one value a head.
HeadList most_important(Model& model, const std::vector<double>& values, double share);

/// What a model of `needs` is loaded with to say what the gated model says.
struct PrunedModel {
  Needs needs;                         ///< with layer_heads
  std::map<std::string, Array> state;  ///< by path
};
/// Only these heads are left, their contexts multiplied by `gates` (one for each of all_heads()) and by the
/// gates that the model has: both go into W_O. Logits differ from those of the gated model by rounding alone.
/// Errors: a layer that cannot go on without heads (see HeadLayer::state_of_heads); not one gate a head.
PrunedModel pruned(Model& model, const HeadList& kept, const std::vector<double>& gates);

/// A model's heads gated: one number for each of all_heads(), beside gates that are set, while it lives.
class HeadGates {
 public:
  HeadGates(Model& model, const std::vector<double>& gates);

 private:
  std::vector<std::unique_ptr<GateScope>> scopes_;
};

/// Hard-Concrete gates (Louizos et al. 2018, Voita et al. 2019): each head has a gate
/// g = clip(s·(ζ − γ) + γ, 0, 1), s = σ((ln u − ln(1 − u) + log α)/τ), with τ = 0.33, γ = −0.1, ζ = 1.1 and
/// fresh u in (0, 1) at each step; log α is learned on loss + λ Σ σ(log α − τ ln(−γ/ζ)), the expected number
/// of open gates. The model's weights stay as they are.
struct GateLearning {
  double lambda = 0.01;
  std::int64_t steps = 300;
  std::int64_t batch = 32;
  double learning_rate = 0.1;    ///< of Adam
  double start = 2;              ///< log α at first: gates are open
  std::int64_t first_batch = 0;  ///< index of the first training batch
};
struct LearnedGates {
  std::vector<double> gates;  ///< of each head without noise: σ(log α), stretched and clipped; exactly 0 or 1
                              ///< where a gate is shut or open for good
  double loss = 0;  ///< mean of the last tenth of the steps, without the penalty
  double open = 0;  ///< expected number of open gates at the end
};
/// Noise is a function of (seed, step, layer, head). The same bits for any number of threads. Heads that
/// share keys and values share a gate. Errors: λ negative or not finite, fewer than one step.
LearnedGates learn_gates(Model& model, const Task& task, std::uint64_t seed, const GateLearning& options);

}  // namespace headlab
