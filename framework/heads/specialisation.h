// How the heads of a layer divide the work: distances between their patterns.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "framework/data/task.h"
#include "framework/ops/mask.h"
#include "framework/train/model.h"

namespace headlab {

/// √JS of one query's weights in two heads (see PatternDistances); `allowed` is how many keys the row allows.
double root_js(const ResolvedMask::Row& row, std::int64_t allowed, const float* first, const float* second);

/// √JS between every two heads of a layer, averaged over queries, where
/// JS(P, Q) = H((P+Q)/2) − ½H(P) − ½H(Q) in nats, with P ← 0.999 P + 0.001/n over the n allowed keys
/// (Clark et al. 2019). 0 for equal patterns, √ln 2 ≈ 0.83 at most. Sums are f64, in a fixed order. Not
/// thread-safe.
class PatternDistances {
 public:
  /// A batch of patterns f32 [B, heads, n_q, n_k]; counted: u8 [B, n_q], absent for all. Queries with fewer
  /// than two allowed keys take no part. What a query may attend to is taken from the first head of a pair.
  /// Errors: another type or rank; masks and flags that do not fit; another number of heads than in an
  /// earlier batch.
  void add(const Array& pattern, const Mask& mask, const Array& counted);

  std::int64_t heads() const { return heads_; }
  /// Error: no such head.
  double between(std::int64_t a, std::int64_t b) const;
  /// Diversity of the layer: the mean over pairs; 0 with fewer than two heads.
  double diversity() const;

 private:
  std::int64_t heads_ = 0;
  std::vector<double> sums_;           // [heads, heads], a < b
  std::vector<std::int64_t> queries_;  // the same
};

/// At most so many sequences are looked at, since pairs of heads need whole patterns: the first of the half
/// of the held-out set that is scored, in batches of at most 2²² weights a layer.
constexpr std::int64_t diversity_sequences = 256;

/// Diversity of each head layer; 0 for one head, absent for a layer that does not show its pattern. For a
/// model in evaluation mode, under NoGrad (see Looking).
std::vector<std::optional<double>> layer_diversity(Model& model, const Task& task, std::uint64_t seed,
                                                   std::int64_t most = diversity_sequences);

}  // namespace headlab
