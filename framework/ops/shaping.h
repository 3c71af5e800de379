// Operations that move numbers without changing them: reshape, transpose, slice, split, concat. f32 or f64.
//
// Axes are counted from the front or, negative, from the back.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <vector>

#include "framework/autograd/tensor.h"

namespace headlab {

/// The same numbers, row by row, under another shape; one size may be -1. A view: it shares numbers and
/// version with x. Error: the element counts differ.
Tensor reshape(const Tensor& x, std::initializer_list<std::int64_t> sizes);
Tensor reshape(const Tensor& x, const Shape& shape);

/// Axis k of the result is axis order[k] of x. Error: order is not a permutation of x's axes.
Tensor transpose(const Tensor& x, const std::vector<int>& order);
/// Two axes change places.
Tensor swap_axes(const Tensor& x, int a, int b);

/// Elements from … to-1 along an axis. A view where the axes before it have size 1, else a copy. Error: not
/// 0 <= from <= to <= size.
Tensor slice(const Tensor& x, int axis, std::int64_t from, std::int64_t to);

/// Neighbouring pieces along an axis, copied. Error: the sizes do not add up to the axis, or there are none.
std::vector<Tensor> split(const Tensor& x, int axis, const std::vector<std::int64_t>& sizes);
/// `parts` pieces of one size. Error: they do not come out even.
std::vector<Tensor> split(const Tensor& x, int axis, std::int64_t parts);

/// Joined along an axis. Errors: no tensors; types or other sizes differ.
Tensor concat(std::span<const Tensor> tensors, int axis);
Tensor concat(std::initializer_list<Tensor> tensors, int axis);

}  // namespace headlab
