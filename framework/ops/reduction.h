// Sum, mean and maximum over axes of an f32 or f64 tensor.
//
// Axes are counted from the front or, negative, from the back. Reduced axes vanish from the shape; with
// keep_axes they remain with size 1. Errors: an axis out of range or named twice; another type.
#pragma once

#include <initializer_list>
#include <utility>
#include <vector>

#include "framework/autograd/tensor.h"

namespace headlab {

/// One axis or several: sum(x, 1), sum(x, {0, -1}).
class AxisList {
 public:
  AxisList(int axis) : axes_{axis} {}                          // NOLINT: meant to convert
  AxisList(std::initializer_list<int> axes) : axes_(axes) {}   // NOLINT
  AxisList(std::vector<int> axes) : axes_(std::move(axes)) {}  // NOLINT
  const std::vector<int>& axes() const { return axes_; }

 private:
  std::vector<int> axes_;
};

/// Added in f64 in a fixed order (framework/kernels/reduce.h) and rounded once for each group of neighbouring
/// axes. An empty sum is 0. Without axes: over everything, rank 0.
Tensor sum(const Tensor& x);
Tensor sum(const Tensor& x, const AxisList& axes, bool keep_axes = false);

/// The mean of no elements is NaN.
Tensor mean(const Tensor& x);
Tensor mean(const Tensor& x, const AxisList& axes, bool keep_axes = false);

/// NaN where any element is NaN. The gradient goes to the first of equal maxima, in the order of x. Error:
/// nothing to take the maximum of.
Tensor max(const Tensor& x);
Tensor max(const Tensor& x, const AxisList& axes, bool keep_axes = false);

}  // namespace headlab
