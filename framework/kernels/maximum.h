// The largest element along an axis, and where it is.
#pragma once

#include <cstdint>

namespace headlab::kernels {

/// y[o, i] = max_r x[o, r, i] for x of shape [outer, reduced, inner], and the first r that has it; the first
/// NaN where there is one. Precondition: reduced > 0.
void maximum(const float* x, std::int64_t outer, std::int64_t reduced, std::int64_t inner, float* y,
             std::int64_t* first);
void maximum(const double* x, std::int64_t outer, std::int64_t reduced, std::int64_t inner, double* y,
             std::int64_t* first);

}  // namespace headlab::kernels
