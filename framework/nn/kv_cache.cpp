#include "framework/nn/kv_cache.h"

#include "framework/core/check.h"
#include "framework/ops/shaping.h"

namespace headlab {

namespace {
void check_fits(const Tensor& before, const Tensor& more, const char* what) {
  const Shape& shape = more.shape();
  check(shape.rank() == 3, "kv_cache", "needs {} of shape [batch, tokens, width], not {}", what, shape);
  check(!more.requires_grad(), "kv_cache", "{} need a gradient; a cache is for use under NoGrad", what);
  if (!before) return;
  check(before.dim(0) == shape[0] && before.dim(2) == shape[2] && before.dtype() == more.dtype(), "kv_cache",
        "{} of {} {} do not continue those of {} {}", what, name_of(more.dtype()), shape,
        name_of(before.dtype()), before.shape());
}
}  // namespace

void KeyValueCache::append(const Tensor& keys, const Tensor& values) {
  check_fits(keys_, keys, "keys");
  check_fits(values_, values, "values");
  check(keys.dim(0) == values.dim(0) && keys.dim(1) == values.dim(1), "kv_cache",
        "keys {} and values {} are not of the same tokens", keys.shape(), values.shape());
  const Tensor all_keys = keys_ ? concat({keys_, keys}, 1) : keys;
  const Tensor all_values = values_ ? concat({values_, values}, 1) : values;
  keys_ = all_keys;
  values_ = all_values;
}

void KeyValueCache::clear() {
  keys_ = Tensor();
  values_ = Tensor();
}

}  // namespace headlab
