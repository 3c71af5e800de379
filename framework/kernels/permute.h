// Moving blocks of numbers about: transposing axes, copying columns in and out.
#pragma once

#include <cstdint>
#include <span>

#include "framework/core/array.h"

namespace headlab::kernels {

/// y = [y +] x with its axes in another order: axis k of y is axis order[k] of x, as in numpy.transpose.
/// Preconditions: order is a permutation, y (f32 or f64, as x) has the permuted shape.
void permute(const Array& x, std::span<const int> order, Array& y, bool accumulate);
/// order's inverse.
void invert(std::span<const int> order, std::span<int> inverse);

/// to[r, i] = [to[r, i] +] from[r, i] for r < rows, i < width; the leading dimensions count elements. With
/// from == nullptr, zeros.
template <class T>
void copy_block(const T* from, std::int64_t from_stride, T* to, std::int64_t to_stride, std::int64_t rows,
                std::int64_t width, bool accumulate = false);

}  // namespace headlab::kernels
