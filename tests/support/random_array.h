// Arrays of standard normal numbers.
#pragma once

#include <cstdint>

#include "framework/core/array.h"
#include "framework/core/random.h"

namespace headlab {

/// The next numbers of a generator, rounded to the type.
inline Array random_array(Random& random, const Shape& shape, DType dtype) {
  Array a(shape, DType::f64);
  for (double& x : a.values<double>()) x = random.normal();
  return dtype == DType::f64 ? a : a.to(dtype);
}

/// f64, a function of the seed.
inline Array random_array(const Shape& shape, std::uint64_t seed) {
  Random random(seed, Stream::evaluation);
  return random_array(random, shape, DType::f64);
}

}  // namespace headlab
