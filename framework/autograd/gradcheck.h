// Compares analytic gradients with central differences, in f64, over all inputs.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "framework/autograd/tensor.h"

namespace headlab {

struct GradcheckOptions {
  double step = 1e-6;       ///< of the difference, times max(1, |x|)
  double tolerance = 1e-7;  ///< |analytic − numeric| ≤ tolerance · max(1, |analytic|, |numeric|)
  std::int64_t full_limit =
      40'000;  ///< outputs × inputs up to which the whole Jacobian is compared, else a random projection
  std::uint64_t seed = 0;  ///< of the projection
};

/// Empty message: they agree. Otherwise the worst element: which input, index, analytic, numeric, tolerance.
struct GradcheckResult {
  std::string message;
  explicit operator bool() const { return message.empty(); }
};

using GradcheckFunction = std::function<Tensor(std::span<const Tensor>)>;

/// `inputs` are f64 leaves; those that require a gradient are checked, the others are passed on. The function
/// must be pure. Error: an input that needs a gradient is not f64, or none does.
GradcheckResult gradcheck(const GradcheckFunction& function, std::vector<Tensor> inputs,
                          const GradcheckOptions& options = {});

}  // namespace headlab
