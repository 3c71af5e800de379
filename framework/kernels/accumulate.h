// Sums of arrays, element by element: where two gradients meet.
#pragma once

#include <cstdint>

namespace headlab::kernels {

/// destination[i] += source[i].
void accumulate(const float* source, float* destination, std::int64_t n);
void accumulate(const double* source, double* destination, std::int64_t n);

}  // namespace headlab::kernels
