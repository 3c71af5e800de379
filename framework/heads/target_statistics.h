// How well a head does one of the jobs that a task names.
#pragma once

#include <cstdint>
#include <vector>

#include "framework/data/batch.h"
#include "framework/heads/pattern_rows.h"

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

/// From this on a head does a job: it is *clean*. More than 0.8 of the mass, or normalised entropy ≥ 0.95.
constexpr double clean_mass = 0.8;
constexpr double clean_entropy = 0.95;
inline bool is_clean(const TargetScore& score, HeadTarget::Kind kind) {
  if (score.queries == 0) return false;
  return kind == HeadTarget::Kind::key ? score.mass > clean_mass : score.normalised_entropy >= clean_entropy;
}

/// Sums over batches of one layer's patterns for one head target; f64, in a fixed order. Not thread-safe.
class TargetStatistics {
 public:
  explicit TargetStatistics(HeadTarget::Kind kind) : kind_(kind) {}
  /// keys: i64 [B, n_q], a key's position or `unscored`, as Batch::head_targets has them. The rows' own flags
  /// are to be absent: the labels say which queries count. Errors: labels of another shape, or of a key that
  /// its query may not attend to.
  void add(const PatternRows& rows, const Array& keys);

  TargetScore score(std::int64_t head) const;
  /// The δ that labels have most often (ties: the lower), and the share of labels that have a given δ: how
  /// good an answer without a look at the content is.
  std::int64_t best_offset() const;
  double share_of_offset(std::int64_t offset) const;

 private:
  struct Sums {
    std::int64_t queries = 0, hits = 0;
    double mass = 0, normalised = 0;
  };
  HeadTarget::Kind kind_;
  std::int64_t n_k_ = 0;
  std::vector<Sums> sums_;
  std::vector<std::int64_t> offsets_;
};

}  // namespace headlab
