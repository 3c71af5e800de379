// Rows of a table picked by index, and the way back.
#pragma once

#include <cstdint>

namespace headlab::kernels {

/// out[i] = table[ids[i]] for rows of d numbers; ids are in range (unchecked).
void gather_rows(const float* table, const std::int64_t* ids, std::int64_t count, std::int64_t d, float* out);
void gather_rows(const double* table, const std::int64_t* ids, std::int64_t count, std::int64_t d,
                 double* out);

/// table[ids[i]] += rows[i], in ascending i for each row of the table; without `accumulate` the table [size,
/// d] starts from 0.
void scatter_add_rows(const float* rows, const std::int64_t* ids, std::int64_t count, std::int64_t d,
                      float* table, std::int64_t size, bool accumulate);
void scatter_add_rows(const double* rows, const std::int64_t* ids, std::int64_t count, std::int64_t d,
                      double* table, std::int64_t size, bool accumulate);

}  // namespace headlab::kernels
