// Losses: cross entropy of class scores, mean squared error.
#pragma once

#include <cstdint>
#include <optional>

#include "framework/autograd/tensor.h"

namespace headlab {

struct CrossEntropyOptions {
  std::optional<std::int64_t> ignore = -1;  ///< targets of this value are not counted
  double label_smoothing = 0;  ///< in [0, 1]: this share of the target goes to all classes evenly
};

struct CrossEntropy {
  Tensor loss;               ///< rank 0
  std::int64_t counted = 0;  ///< targets that were not ignored
};

/// The mean of -log softmax(logits)[target] over the counted targets; logits [..., classes], targets i64
/// [...]. Right for any finite scores; NaN among the scores of a counted target gives NaN. With nothing
/// counted the loss and its gradient are 0. Errors: shapes that do not fit; targets that are not i64; a
/// target that is neither a class nor the ignored value; smoothing outside [0, 1].
CrossEntropy cross_entropy(const Tensor& logits, const Array& targets,
                           const CrossEntropyOptions& options = {});

/// The mean of (x - target)² over all elements, rank 0; 0 for no elements. Differentiable in both. Error: the
/// shapes or types differ.
Tensor mse(const Tensor& x, const Tensor& target);

}  // namespace headlab
