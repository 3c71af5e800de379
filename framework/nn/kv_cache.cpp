#include "framework/nn/kv_cache.h"

#include <algorithm>
#include <cstring>

#include "framework/core/check.h"
#include "framework/ops/shaping.h"

namespace headlab {

void KeyValueCache::Rows::check_fits(const Tensor& more, const char* what) const {
  const Shape& shape = more.shape();
  check(shape.rank() == 3, "kv_cache", "needs {} of shape [batch, tokens, width], not {}", what, shape);
  check(!more.requires_grad(), "kv_cache", "{} need a gradient; a cache is for use under NoGrad", what);
  if (!all) return;
  check(all.dim(0) == shape[0] && all.dim(2) == shape[2] && all.dtype() == more.dtype(), "kv_cache",
        "{} of {} {} do not continue those of {} {}", what, name_of(more.dtype()), shape,
        name_of(all.dtype()), all.shape());
}

void KeyValueCache::Rows::append(const Tensor& more) {
  const std::int64_t width = more.dim(2);
  const std::int64_t longer = length + more.dim(1);
  if (more.dim(0) != 1) {
    all = all ? concat({all, more}, 1) : more.detach();
  } else {
    // Rows behind `length` belong to nobody yet, so tensors handed out before keep their numbers.
    if (!room || longer > room.dim(0)) {
      Array larger({std::max(longer, 2 * length), width}, more.dtype());
      const Array kept = room && length > 0 ? room.range(0, length) : Array();
      if (kept) std::memcpy(larger.raw(), kept.raw(), static_cast<std::size_t>(kept.bytes()));
      room = larger;
    }
    Array to = room.range(length, longer);
    if (more.size() > 0) std::memcpy(to.raw(), more.value().raw(), static_cast<std::size_t>(to.bytes()));
    all = Tensor(room.range(0, longer).reshape({1, longer, width}));
  }
  length = longer;
}

void KeyValueCache::append(const Tensor& keys, const Tensor& values) {
  keys_.check_fits(keys, "keys");
  values_.check_fits(values, "values");
  check(keys.dim(0) == values.dim(0) && keys.dim(1) == values.dim(1), "kv_cache",
        "keys {} and values {} are not of the same tokens", keys.shape(), values.shape());
  keys_.append(keys);
  values_.append(values);
}

void KeyValueCache::clear() {
  keys_ = {};
  values_ = {};
}

}  // namespace headlab
