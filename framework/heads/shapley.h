// Shapley values of heads.
#pragma once

#include <cstdint>
#include <vector>

#include "framework/heads/knockout_runs.h"

namespace headlab {

/// Fair shares of what all heads together are worth (Shapley 1953):
/// φ_h = Σ_S |S|!(H−|S|−1)!/H! · [v(S ∪ h) − v(S)], v being the accuracy, or minus the loss, with the heads S
/// on and all others off. They add up to what is lost when all heads are off. Exact for up to 12 heads, else
/// the mean over random orders with its standard error (Castro et al. 2009).
struct Shapley {
  struct Share {
    HeadId head;
    double accuracy = 0, loss = 0;              ///< loss: how much lower it is thanks to the head
    double accuracy_error = 0, loss_error = 0;  ///< standard errors; 0 where exact
  };
  bool exact = true;
  std::int64_t orders = 0;  ///< random ones; 0 where exact
  std::int64_t evaluations = 0;
  std::vector<Share> shares;
  double accuracy = 0, loss = 0;  ///< what all heads together are worth
  KnockoutRuns runs = {};         ///< its answers are not kept
};
constexpr std::size_t most_exact_heads = 12;
Shapley shapley(Model& model, const Task& task, std::uint64_t seed, std::int64_t orders,
                const KnockoutOptions& options = {});

}  // namespace headlab
