// How the heads of a layer divide the work: distances between their patterns.
#pragma once

#include <cstdint>
#include <vector>

#include "framework/heads/pattern_rows.h"

namespace headlab {

/// √JS between every two heads of a layer, averaged over queries, where
/// JS(P, Q) = H((P+Q)/2) − ½H(P) − ½H(Q) in nats, with P ← 0.999 P + 0.001/n over the n allowed keys
/// (Clark et al. 2019). 0 for equal patterns, √ln 2 ≈ 0.83 at most. Sums are f64, in a fixed order. Not
/// thread-safe.
class PatternDistances {
 public:
  /// Errors: as PatternRows; another number of heads than in an earlier batch. What a query may attend to is
  /// taken from the first head of a pair.
  void add(const PatternRows& rows);

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

}  // namespace headlab
