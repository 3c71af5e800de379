// Loops along one axis of contiguous arrays: softmax, log-softmax, sums of columns.
//
// Row-major throughout. `accumulate` adds to what the output holds instead of overwriting it. The bits of an
// output row depend on that row's inputs alone, never on how many rows stand beside it or on the threads.
#pragma once

#include <cstdint>

namespace headlab::kernels {

/// An axis of n elements that lie `inner` apart, `outer · inner` times: [outer, n, inner]. The last axis has
/// inner = 1.
struct Axis {
  std::int64_t outer = 0;
  std::int64_t n = 0;
  std::int64_t inner = 1;
};

/// y = exp(x - max x) / Σ exp(x - max x) along the axis. Finite for any finite x; a NaN, a +infinity or
/// nothing but -infinity among the x makes all of them NaN. y may be x.
void softmax(const float* x, float* y, Axis axis);
void softmax(const double* x, double* y, Axis axis);
/// dx (+)= y·(dy - Σ y·dy), from the softmax y.
void softmax_backward(const float* y, const float* dy, float* dx, Axis axis, bool accumulate);
void softmax_backward(const double* y, const double* dy, double* dx, Axis axis, bool accumulate);

/// y = (x - max x) - log Σ exp(x - max x) along the axis; NaN as softmax.
void log_softmax(const float* x, float* y, Axis axis);
void log_softmax(const double* x, double* y, Axis axis);
/// dx (+)= dy - exp(y)·Σ dy, from the log-softmax y.
void log_softmax_backward(const float* y, const float* dy, float* dx, Axis axis, bool accumulate);
void log_softmax_backward(const double* y, const double* dy, double* dx, Axis axis, bool accumulate);

/// out[j] (+)= Σ_i x[i, j] for x of [rows, n]: rows ascending within chunks of chunk_rows(rows), then the
/// chunks in order.
void column_sums(const float* x, std::int64_t rows, std::int64_t n, float* out, bool accumulate);
void column_sums(const double* x, std::int64_t rows, std::int64_t n, double* out, bool accumulate);
/// How many rows share one partial sum: from the number of rows alone, so that at most 32 partial sums exist.
std::int64_t chunk_rows(std::int64_t rows);

}  // namespace headlab::kernels
