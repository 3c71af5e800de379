// What a head's attention looks like, whatever the task: how sharp, how far, at which offset.
#pragma once

#include <cstdint>
#include <vector>

#include "framework/ops/telemetry.h"

namespace headlab {

/// Means over the queries that count and have n_i ≥ 2 allowed keys. δ is a key's position less that of its
/// query when the last query is aligned with the last key. Without queries everything is 0.
struct PatternSummary {
  std::int64_t queries = 0;
  double entropy = 0;             ///< H, nats
  double normalised_entropy = 0;  ///< H / ln n_i: 0 one key, 1 even
  double effective_keys = 0;      ///< e^H
  double confidence = 0;          ///< largest weight (Voita et al. 2019)
  double distance = 0;            ///< Σ A |δ|
  double sink_mass = 0;  ///< weight of key 0, over the queries that may attend to it (Gu et al. 2025)
  double self_mass = 0;  ///< weight of the key at δ = 0

  /// One entry per δ, ascending from first_offset; each over the queries that may attend to the key at δ.
  /// These are all δ that can occur, −(n_k − 1) … n_q − 1, where they are at most 129; else −64 … 64, so that
  /// an offset further away is never found to be the best.
  std::vector<double> offset_mass;           ///< P(δ), mean weight
  std::vector<double> offset_share;          ///< F(δ), share whose argmax is there; ties go to the lower key
  std::vector<std::int64_t> offset_queries;  ///< how many queries
  std::int64_t first_offset = 0;

  /// Whether a δ is allowed for at least 25 % of the queries; others take no part in choices.
  bool common(std::size_t index) const {
    return offset_queries[index] > 0 && offset_queries[index] * 4 >= queries;
  }
  /// F and P at a δ; 0 out of range.
  double share_at(std::int64_t offset) const;
  double mass_at(std::int64_t offset) const;
  /// The common δ of largest F, and of largest P; ties go to the lower δ. 0 when there is none.
  std::int64_t best_offset() const { return best(offset_share); }
  std::int64_t heaviest_offset() const { return best(offset_mass); }

 private:
  std::int64_t best(const std::vector<double>& profile) const;
};

/// A head is positional when its best offset holds for this share of the queries (Voita et al. 2019).
constexpr double positional_share = 0.9;
/// … and a sink head when key 0 gets more than this (Gu et al. 2025).
constexpr double sink_share = 0.3;

/// The δ that a summary has.
std::vector<std::int64_t> summary_offsets(std::int64_t n_q, std::int64_t n_k);

/// From telemetry with offsets ascending by 1 from first_offset, and key 0 as its first key.
PatternSummary pattern_summary(const HeadTelemetry& sums, std::int64_t first_offset);

}  // namespace headlab
