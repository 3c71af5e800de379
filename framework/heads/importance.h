// Importance: how much a head's gate would change the loss, from one backward pass for all heads.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "framework/data/task.h"
#include "framework/heads/head_sites.h"

namespace headlab {

/// The forms in which importance is published and coded, each with its name on the command line.
/// example: Michel et al. 2019, eq. 2, E_x |∂L_x/∂ξ|. token: |z_t · ∂L_x/∂z_t| summed over an example's
/// tokens, over all tokens. batch: |Σ_x ∂L_x/∂ξ| over a batch. effect: −E_x[∂L_x/∂ξ], the loss that
/// removing the head would add if the loss were linear in the gate; it has a sign.
enum class ImportanceForm : std::uint8_t { example, token, batch, effect };
std::string name_of(ImportanceForm form);

/// Of one head. ξ is its gate, z_t its context at a query, L_x the example's own mean loss (so that long
/// examples count as much as short ones): a gradient of the mean over a batch is multiplied by the pairs of
/// the batch over those of x. token · tokens of an example ≥ example ≥ batch / examples of a batch.
struct HeadImportance {
  HeadId head;
  double example = 0;
  std::optional<double> token;  ///< absent where the layer does not show z
  double batch = 0;
  double effect = 0;
  /// Error: a form that is absent.
  double of(ImportanceForm form) const;
};

struct ImportanceOptions {
  HeldOut part = HeldOut::score;
  std::int64_t batch_size = 64;
  std::int64_t sequences = 0;  ///< only the first so many of the part; 0: all
};

/// In evaluation mode; parameters get no gradient. A gate of [heads] that is set counts as part of the model.
/// The same bits for any number of threads. Errors: a batch size below 1; a gate of one row an example.
struct Importance {
  std::vector<HeadImportance> heads;
  double examples_a_batch = 0;  ///< on average
  std::int64_t examples = 0;
};
Importance head_importance(Model& model, const Task& task, std::uint64_t seed,
                           const ImportanceOptions& options = {});

/// The values of one form, in the order of heads. `in_layers`: each layer divided by its ℓ2 norm (Molchanov
/// et al. 2017, as Michel et al. do), where that is not 0.
std::vector<double> values_of(const Importance& importance, ImportanceForm form, bool in_layers = false);

/// Rank correlations of two lists: Spearman's ρ (Pearson's r of mean ranks) and Kendall's τ_b. Absent with
/// fewer than two or where one list is constant. Error: other lengths.
std::optional<double> spearman(std::span<const double> a, std::span<const double> b);
std::optional<double> kendall(std::span<const double> a, std::span<const double> b);

}  // namespace headlab
