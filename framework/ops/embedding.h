// Rows of a table picked by id.
#pragma once

#include "framework/autograd/tensor.h"

namespace headlab {

/// ids i64 [...], weight [vocabulary, d] → [..., d]. The gradient of a row that occurs several times is the
/// sum over its positions in ascending order; rows that do not occur get 0. Errors: ids that are not i64; a
/// weight that is not a matrix; an id outside 0 … vocabulary-1, named with its position.
Tensor embedding(const Array& ids, const Tensor& weight);

}  // namespace headlab
