// Names a place in an array of indices, for error messages.
#pragma once

#include <cstdint>

#include "framework/core/shape.h"

namespace headlab {

/// The indices of flat element `index` of an array of this shape, as [1, 0, 4]. Returned as a Shape since
/// that prints so.
Shape position_of(std::int64_t index, const Shape& shape);

}  // namespace headlab
