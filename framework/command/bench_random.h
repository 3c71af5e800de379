// Inputs for what is measured: any numbers will do, but the same in every run.
#pragma once

#include "framework/core/array.h"
#include "framework/core/random.h"
#include "framework/nn/init.h"

namespace headlab {

inline Array random_numbers(const Shape& shape, std::uint64_t index) {
  Array x(shape);
  draw(x, Init::normal(1), index, "bench");
  return x;
}

inline Array random_tokens(const Shape& shape, std::int64_t vocabulary, std::uint64_t index) {
  Array ids(shape, DType::i64);
  Random random(0, Stream::data, index);
  for (std::int64_t& id : ids.values<std::int64_t>()) id = random.below(vocabulary);
  return ids;
}

}  // namespace headlab
