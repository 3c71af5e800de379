// What attention remembers of earlier tokens while a text is written.
#pragma once

#include <cstdint>
#include <vector>

#include "framework/autograd/tensor.h"

namespace headlab {

/// The keys and values of one layer, [B, length, kv_heads·d_k] and [B, length, kv_heads·d_v]; keys are
/// already turned by position. Not differentiable. Not thread-safe.
class KeyValueCache {
 public:
  /// Tokens so far.
  std::int64_t length() const { return keys_.length; }
  /// Adds one token or many. With one example a token costs a constant number of copies, averaged over a
  /// text; with more, each call copies all. Errors, which change nothing: another batch size, width or type
  /// than before; keys and values of different tokens; a tensor that needs a gradient.
  void append(const Tensor& keys, const Tensor& values);
  /// Undefined while there are none. Later calls change no number of them.
  const Tensor& keys() const { return keys_.all; }
  const Tensor& values() const { return values_.all; }
  void clear();

 private:
  struct Rows {
    Tensor all;  // [B, length, width]
    Array room;  // [capacity, width], whose first rows `all` shares where B is 1
    std::int64_t length = 0;
    void check_fits(const Tensor& more, const char* what) const;
    void append(const Tensor& more);
  };
  Rows keys_, values_;
};

/// The caches of a model's self-attention layers for one text (or several of one length, side by side).
struct TextCache {
  std::vector<KeyValueCache> layers;
  std::int64_t length() const { return layers.empty() ? 0 : layers.front().length(); }
  void clear() { layers.clear(); }
};

}  // namespace headlab
