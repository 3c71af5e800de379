// How a parameter gets its first values.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "framework/core/array.h"

namespace headlab {

/// A rule; the numbers follow from it, a seed and the parameter's path. For a matrix [out, in]: fan_in = in,
/// fan_out = out.
struct Init {
  enum class Kind {
    constant,        ///< every element `value`
    normal,          ///< N(0, value²)
    xavier_normal,   ///< N(0, 2/(in+out)), Glorot & Bengio 2010
    xavier_uniform,  ///< ±√(6/(in+out)), Glorot & Bengio 2010
    fan_in,          ///< N(0, 1/in)
  };
  Kind kind = Kind::constant;
  double value = 0;
  double gain = 1;  ///< multiplies the deviation

  static Init constant(double value) { return {.kind = Kind::constant, .value = value}; }
  static Init zeros() { return constant(0); }
  static Init ones() { return constant(1); }
  static Init normal(double std) { return {.kind = Kind::normal, .value = std}; }
  static Init xavier_normal() { return {.kind = Kind::xavier_normal}; }
  static Init xavier_uniform() { return {.kind = Kind::xavier_uniform}; }
  static Init fan_in() { return {.kind = Kind::fan_in}; }
  /// The same rule with the deviation multiplied, e.g. 1/√(2·layers) for what writes to the residual stream.
  Init scaled(double factor) const {
    Init init = *this;
    init.gain *= factor;
    return init;
  }
};

/// Fills rows [0, rows) of a logical matrix [rows, columns]. Element (r, c) is a function of (seed, path, r,
/// c) alone, unit variate first and scaled after: packing matrices together, or splitting them over another
/// number of heads, changes no bit.
void draw(Array& matrix, const Init& init, std::uint64_t seed, std::string_view path);

}  // namespace headlab
