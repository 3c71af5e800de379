#include "framework/ops/positions.h"

#include <span>
#include <vector>

namespace headlab {

Shape position_of(std::int64_t index, const Shape& shape) {
  std::vector<std::int64_t> place(static_cast<std::size_t>(shape.rank()));
  for (int axis = shape.rank() - 1; axis >= 0; --axis) {
    place[static_cast<std::size_t>(axis)] = index % shape[axis];
    index /= shape[axis];
  }
  return Shape(std::span<const std::int64_t>(place));
}

}  // namespace headlab
