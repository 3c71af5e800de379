// The activation of a feed-forward network on a block of a matrix that is in the cache just now: what
// products of matrices end with. On the caller's thread.
#pragma once

#include <cstdint>

#include "framework/kernels/elementwise.h"

namespace headlab::kernels {

/// Some rows and columns of a row-major matrix.
struct Window {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t stride = 0;  ///< from one row to the next
};

/// y = f(y), and where `slope` is given (it lies as y does) slope = f'(y) of the y before: the bits of
/// apply() and of apply_backward() with dy = 1, both for little more than the price of one. Of Gelu and
/// GeluExact; T is float or double.
template <class Function, class T>
void activate(T* y, T* slope, Window window);

/// y = y·factor, which lies as y does.
template <class T>
void multiply(T* y, const T* factor, Window window);

}  // namespace headlab::kernels
