#include "framework/kernels/gather.h"

#include <algorithm>

#include "framework/core/parallel.h"
#include "framework/core/profile.h"
#include "framework/kernels/lanes.h"

namespace headlab::kernels {

namespace {

constexpr std::int64_t columns = 64;  // that one chunk of scatter_add_rows owns

template <class T>
void gather_any(const T* table, const std::int64_t* ids, std::int64_t count, std::int64_t d, T* out) {
  const Cost cost = price<T>(0.1, d);
  profile::moved<T>(2, count * d);
  parallel_for(count, grain_for(cost), cost, [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) std::copy_n(table + ids[i] * d, d, out + i * d);
  });
}

// Each chunk owns some columns of the whole table, so that no two write to one number and each number gets
// its terms in the order of the positions.
template <class T>
void scatter_any(const T* rows, const std::int64_t* ids, std::int64_t count, std::int64_t d, T* table,
                 std::int64_t size, bool accumulate) {
  const Cost column = price<T>(0.15, count + size);
  profile::moved<T>(1, (accumulate ? 3 * count : count + size) * d);
  parallel_for(d, columns, column, [=](std::int64_t begin, std::int64_t end) {
    if (!accumulate) {
      for (std::int64_t r = 0; r < size; ++r) std::fill(table + r * d + begin, table + r * d + end, T{0});
    }
    for (std::int64_t i = 0; i < count; ++i) {
      const T* from = rows + i * d + begin;
      T* to = table + ids[i] * d + begin;
      for_lanes<T>(end - begin, [&](std::int64_t j, auto part) {
        put(to + j, get(to + j, part) + get(from + j, part), part);
      });
    }
  });
}

}  // namespace

void gather_rows(const float* table, const std::int64_t* ids, std::int64_t count, std::int64_t d,
                 float* out) {
  gather_any(table, ids, count, d, out);
}
void gather_rows(const double* table, const std::int64_t* ids, std::int64_t count, std::int64_t d,
                 double* out) {
  gather_any(table, ids, count, d, out);
}
void scatter_add_rows(const float* rows, const std::int64_t* ids, std::int64_t count, std::int64_t d,
                      float* table, std::int64_t size, bool accumulate) {
  scatter_any(rows, ids, count, d, table, size, accumulate);
}
void scatter_add_rows(const double* rows, const std::int64_t* ids, std::int64_t count, std::int64_t d,
                      double* table, std::int64_t size, bool accumulate) {
  scatter_any(rows, ids, count, d, table, size, accumulate);
}

}  // namespace headlab::kernels
