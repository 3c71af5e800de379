#include "framework/train/model.h"

#include "framework/core/check.h"

namespace headlab {

Tensor Model::next_logits(const Batch&, TextCache&) {
  fail("model", "this one cannot go on from a cache; logits() of the whole text does");
}

}  // namespace headlab
