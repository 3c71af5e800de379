// Looking for NaN and infinity.
#pragma once

#include <cstdint>

namespace headlab::kernels {

/// Whether all numbers of `rows` rows are finite: row i is x[i·step] … x[i·step + columns − 1].
bool all_finite(const float* x, std::int64_t rows, std::int64_t columns, std::int64_t step);
bool all_finite(const double* x, std::int64_t rows, std::int64_t columns, std::int64_t step);

}  // namespace headlab::kernels
