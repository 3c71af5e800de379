// How well a head does one of the jobs that a task names.
#pragma once

#include <cstdint>
#include <map>

#include "framework/core/array.h"
#include "framework/data/batch.h"
#include "framework/ops/telemetry.h"

namespace headlab {

/// One head and one head target.
struct TargetScore {
  std::int64_t queries = 0;       ///< labelled queries with n_i ≥ 2
  double mass = 0;                ///< `key`: mean weight of the labelled key
  double relation = 0;            ///< `key`: relation accuracy, the share whose argmax is the labelled key
  double normalised_entropy = 0;  ///< `uniform`: mean over these queries

  /// One number between 0 and 1 for how much the head does the job: mass, or, where even attention is the
  /// job, normalised entropy.
  double strength(HeadTarget::Kind kind) const {
    return kind == HeadTarget::Kind::key ? mass : normalised_entropy;
  }
};

/// From telemetry of the target's labels.
TargetScore target_score(const HeadTelemetry::Mass& sums, HeadTarget::Kind kind);

/// From this on a head does a job: it is *clean*. More than 0.8 of the mass, or normalised entropy ≥ 0.95.
constexpr double clean_mass = 0.8;
constexpr double clean_entropy = 0.95;
inline bool is_clean(const TargetScore& score, HeadTarget::Kind kind) {
  if (score.queries == 0) return false;
  return kind == HeadTarget::Kind::key ? score.mass > clean_mass : score.normalised_entropy >= clean_entropy;
}

/// At which δ the labels of a target are: how good an answer without a look at the content is.
class LabelOffsets {
 public:
  /// labels: i64 [B, n_q], a key's position or `unscored`, of queries that see n_k keys.
  void add(const Array& labels, std::int64_t n_k);
  /// The δ that labels have most often (ties: the lower; 0 without labels), and the share of labels that have
  /// a given δ.
  std::int64_t best() const;
  double share(std::int64_t offset) const;

 private:
  std::map<std::int64_t, std::int64_t> counts_;
  std::int64_t labels_ = 0;
};

}  // namespace headlab
