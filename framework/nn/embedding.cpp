#include "framework/nn/embedding.h"

#include "framework/ops/embedding.h"

namespace headlab {

namespace {
Shape table_shape(const Embedding::Options& o) {
  check(o.vocabulary >= 1 && o.d_model >= 1, "Embedding", "vocabulary {} and d_model {} must be positive",
        o.vocabulary, o.d_model);
  return {o.vocabulary, o.d_model};
}
}  // namespace

Embedding::Embedding(const Options& o) : weight(this, "weight", table_shape(o), o.weights, o.role) {}

Tensor Embedding::operator()(const Array& ids) { return embedding(ids, weight); }

}  // namespace headlab
