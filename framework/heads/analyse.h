// Looking at every head of a trained model: what its attention looks like and which of the task's jobs it
// does.
#pragma once

#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "framework/heads/head_sites.h"
#include "framework/heads/pattern_summary.h"
#include "framework/heads/target_score.h"

namespace headlab {

/// Whatever is chosen among several (best offset, baseline, assignment) is chosen on one half of the held-out
/// set and measured on the other; all numbers are of that other half.
struct HeadReport {
  HeadId id;
  std::string layer;  ///< "blocks.0.attn"
  AttentionSite site = AttentionSite::self;
  PatternSummary pattern;  ///< over the queries of counted_queries()
  std::int64_t best_offset = 0;
  double best_offset_share = 0;  ///< F of it
  bool positional = false;       ///< best_offset_share ≥ positional_share
  bool sink = false;             ///< sink_mass > sink_share
  /// One per head target of the task; without queries where the target is of another site.
  std::vector<TargetScore> targets;
  /// The target that the head is clean for, the strongest of them.
  std::optional<std::size_t> clean;
};

/// A relation is *syntactic* when a head's accuracy is this much above the best fixed offset (Voita et al.
/// 2019).
constexpr double syntactic_margin = 0.10;

/// One head target of the task over the whole model.
struct TargetReport {
  HeadTarget target;
  std::int64_t queries = 0;
  /// The fixed offset that answers best without a look at the content, and how often it is right.
  std::int64_t baseline_offset = 0;
  double baseline = 0;
  /// The head that does the job: of a `key` target the one of largest mass; of a `uniform` one the most even
  /// head among those that have no `key` job, if its normalised entropy is ≥ clean_entropy.
  std::optional<std::size_t> head;  ///< index into HeadAnalysis::heads
  std::int64_t clean_heads = 0;
  double mean_strength = 0;  ///< TargetScore::strength, mean over the heads of its site
  double mean_relation = 0;  ///< relation accuracy, mean over them
  double best_relation = 0;  ///< that of the head with the best one where choices are made

  /// Whether a head's score says that it has found more than a fixed offset.
  bool syntactic(const TargetScore& score) const {
    return score.queries > 0 && score.relation >= baseline + syntactic_margin;
  }
};

struct LayerReport {
  std::string layer;
  AttentionSite site = AttentionSite::self;
  std::int64_t coverage = 0;  ///< targets that own a clean head of this layer
  double redundancy = 0;      ///< clean heads per covered target; 0 without any
  /// Mean √JS between its heads, see layer_diversity(); absent where the layer does not show its pattern.
  std::optional<double> diversity;
};

struct HeadAnalysis {
  std::vector<HeadReport> heads;
  std::vector<TargetReport> targets;  ///< in the task's order
  std::vector<LayerReport> layers;

  double confidence = 0;              ///< mean over heads
  double normalised_entropy = 0;      ///< mean over heads
  std::int64_t clean_heads = 0;       ///< heads that are clean for a target
  std::int64_t cover = 0;             ///< different targets that own a clean head
  std::int64_t distinct_offsets = 0;  ///< different (site, offset of largest mean mass) of the heads
  std::int64_t distinct_owners = 0;   ///< different heads among TargetReport::head
};

/// Runs the held-out set in evaluation mode, without recording; the model's mode and gates stay as they were.
/// Asks layers for telemetry, so that memory does not grow with the square of the context. The same bits for
/// any number of threads. `sequences`: no more than these of each half. Errors: a batch size below 1; a layer
/// that gives no telemetry; labels that do not fit the model's attention.
HeadAnalysis analyse_heads(Model& model, const Task& task, std::uint64_t seed, std::int64_t batch_size = 64,
                           std::int64_t sequences = std::numeric_limits<std::int64_t>::max());

}  // namespace headlab
