// Sums over axes, accurate for long f32 rows and with the same bits for any number of threads.
//
// Order: everything is added in f64 and rounded once. A contiguous row is cut into pieces of 16384; within a
// piece sixteen interleaved partial sums run along the row and are folded i+8, +4, +2, +1; pieces are added
// in order. Rows that are added up (columns reduced) are cut into blocks of 256 rows, added one by one;
// blocks are added in order.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string_view>

#include "framework/core/array.h"

namespace headlab::kernels {

struct SumOptions {
  double divisor = 1;       ///< the total is divided by it before it is rounded
  bool accumulate = false;  ///< add to y instead of overwriting it
};

/// y[o, i] = [y[o, i] +] Σ_r x[o, r, i] / divisor for x of shape [outer, reduced, inner]. An empty sum is 0.
void sum(const float* x, std::int64_t outer, std::int64_t reduced, std::int64_t inner, float* y,
         SumOptions options = {});
void sum(const double* x, std::int64_t outer, std::int64_t reduced, std::int64_t inner, double* y,
         SumOptions options = {});

/// A set of axes of one array.
class Axes {
 public:
  Axes() = default;
  /// Negative axes count from the back. Errors, naming `where`: out of range for the shape, named twice.
  Axes(std::span<const int> axes, const Shape& shape, std::string_view where);
  static Axes all(const Shape& shape);
  void insert(int axis) { bits_ |= 1U << static_cast<unsigned>(axis); }
  bool has(int axis) const { return (bits_ >> static_cast<unsigned>(axis) & 1U) != 0; }
  /// The shape with these axes at size 1, or without them; the number of elements that meet in one.
  Shape kept(const Shape& shape) const;
  Shape dropped(const Shape& shape) const;
  std::int64_t count(const Shape& shape) const;

 private:
  unsigned bits_ = 0;
};

/// The sum of an f32 or f64 array over axes that remain with size 1. Axes that do not touch are summed one
/// group after the other, slowest first.
Array sum_axes(const Array& x, Axes axes, double divisor = 1);
/// The gradient of an operand that was broadcast: sums `gradient` over the axes along which `shape` was
/// stretched. Precondition: shape broadcasts to gradient.shape().
Array sum_to(const Array& gradient, const Shape& shape);

}  // namespace headlab::kernels
