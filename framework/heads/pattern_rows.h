// The rows of a pattern that count in averages, head by head, in a fixed order.
#pragma once

#include <cstdint>

#include "framework/core/array.h"
#include "framework/ops/mask.h"

namespace headlab {

/// What one query of one head attends to.
struct PatternRow {
  const float* weights;  ///< [n_k]
  std::int64_t example, query;
  std::int64_t aligned;  ///< the key at δ = 0: the last query is aligned with the last key
  std::int64_t allowed;  ///< n_i, the number of keys that it may attend to
  ResolvedMask::Row mask;

  bool allows(std::int64_t key) const { return mask.allows(key); }
};

/// A batch of patterns f32 [B, heads, n_q, n_k] with what its queries may attend to, and which of them count:
/// u8 [B, n_q], or absent for all. Errors: another type or rank, masks and flags that do not fit.
class PatternRows {
 public:
  PatternRows(const Array& pattern, const Mask& mask, const Array& counted);

  std::int64_t heads() const { return pattern_.shape()[1]; }
  std::int64_t n_q() const { return pattern_.shape()[2]; }
  std::int64_t n_k() const { return pattern_.shape()[3]; }
  /// δ of index i of an offset profile is i − (n_k − 1).
  std::int64_t offsets() const { return n_q() + n_k() - 1; }

  /// f(row) for the queries that count and have at least two keys to choose from, by example, then query.
  template <class F>
  void for_each(std::int64_t head, F&& f) const {
    const std::int64_t batch = pattern_.shape()[0];
    for (std::int64_t b = 0; b < batch; ++b) {
      for (std::int64_t q = 0; q < n_q(); ++q) {
        if (flags_ && flags_[b * n_q() + q] == 0) continue;
        const std::int64_t allowed = mask_.allowed_keys(b, head, q);
        if (allowed < 2) continue;
        f(PatternRow{weights(b, head, q), b, q, q + n_k() - n_q(), allowed, mask_.row(b, head, q)});
      }
    }
  }
  const float* weights(std::int64_t example, std::int64_t head, std::int64_t query) const {
    return values_ + ((example * heads() + head) * n_q() + query) * n_k();
  }

 private:
  Array pattern_, counted_;
  const float* values_;
  const std::uint8_t* flags_ = nullptr;
  ResolvedMask mask_;
};

/// The key with the largest weight among those allowed; ties go to the lower key.
std::int64_t argmax_of(const PatternRow& row);
/// −Σ A ln A over the allowed keys, in nats.
double entropy_of(const PatternRow& row);

}  // namespace headlab
