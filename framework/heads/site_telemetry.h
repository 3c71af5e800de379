// What the laboratory asks the layers of a model for, batch by batch.
#pragma once

#include <cstddef>
#include <map>
#include <vector>

#include "framework/heads/head_sites.h"
#include "framework/ops/telemetry.h"

namespace headlab {

/// Of the layers of one site, for one batch.
struct SiteQuestion {
  /// Offsets as summary_offsets() has them; key 0, the sink; counted_queries(); the labels of the targets
  /// below.
  TelemetryOptions telemetry;
  std::vector<std::size_t> targets;  ///< the task's head targets of this site
  std::int64_t n_k = 0;

  /// The place of a target in `labels`; absent where it is of another site.
  std::optional<std::size_t> label_of(std::size_t target) const;
  /// Its labels, i64 [B, n_q], `unscored` where a query has fewer than two keys to choose from. Of a
  /// `uniform` target: the first key that the query may attend to.
  Array labels(std::size_t label) const;
};

using SiteQuestions = std::map<AttentionSite, SiteQuestion>;

/// One for each site that the model has. Errors: labels of another shape; of a key that its query may not
/// attend to.
SiteQuestions site_questions(Model& model, const std::vector<HeadTarget>& targets, const Batch& batch);

/// Runs a batch and returns the telemetry of each head layer, asked for what its site is asked for. For a
/// model in evaluation mode, under NoGrad (see Looking). Errors: a layer that gives no telemetry; its path is
/// named.
std::vector<Telemetry> layer_telemetry(Model& model, const SiteQuestions& questions, const Batch& batch);

}  // namespace headlab
