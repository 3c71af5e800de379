// What attention remembers of earlier tokens while a text is written.
#pragma once

#include <cstdint>

#include "framework/autograd/tensor.h"

namespace headlab {

/// The keys and values of one layer, [B, length, kv_heads·d_k] and [B, length, kv_heads·d_v]; keys are
/// already turned by position. Not differentiable. Not thread-safe.
class KeyValueCache {
 public:
  /// Tokens so far.
  std::int64_t length() const { return keys_ ? keys_.dim(1) : 0; }
  /// Adds one token or many. Errors: another batch size, width or type than before; one that needs a
  /// gradient.
  void append(const Tensor& keys, const Tensor& values);
  const Tensor& keys() const { return keys_; }
  const Tensor& values() const { return values_; }
  void clear();

 private:
  Tensor keys_, values_;
};

}  // namespace headlab
