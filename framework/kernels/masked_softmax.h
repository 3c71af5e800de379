// Rows of attention scores → attention weights, and back. Blocked keys are skipped: whatever their scores
// hold, NaN included, changes no bit of the row.
#pragma once

#include <cstdint>

namespace headlab::kernels {

/// What one query may attend to, and how its raw products q·k become scores. Keys outside [first, last) are
/// blocked.
template <class T>
struct ScoreRow {
  std::int64_t first = 0;
  std::int64_t last = 0;
  const std::uint8_t* allow = nullptr;  ///< [n_k], 0 blocks; absent: nothing
  const std::uint8_t* valid = nullptr;  ///< the same once more: padding
  const T* bias = nullptr;              ///< [n_k], added to the scaled product; −∞ blocks
  T scale = 1;

  bool allows(std::int64_t key) const {
    return key >= first && key < last && (!allow || allow[key] != 0) && (!valid || valid[key] != 0);
  }
};

/// In place: raw products [n_k] → weights, which sum to 1. A row with no allowed key becomes 0; an allowed
/// NaN makes the whole row NaN among the allowed. The bits depend on allowed keys and their positions only.
void masked_softmax(float* row, std::int64_t n_k, const ScoreRow<float>& options);
void masked_softmax(double* row, std::int64_t n_k, const ScoreRow<double>& options);

/// In place: d loss / d weights [n_k] → d loss / d scores, before `scale`: ds = p ∘ (dp − Σ p·dp). Exactly 0
/// where p is 0, whatever dp holds there.
void masked_softmax_backward(const float* weights, float* gradient, std::int64_t n_k);
void masked_softmax_backward(const double* weights, double* gradient, std::int64_t n_k);

}  // namespace headlab::kernels
