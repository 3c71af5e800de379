// What a backward closure works with: sinks, into which it puts the gradients of an op's inputs, and inputs
// saved by forward.
#pragma once

#include <span>
#include <string_view>

#include "framework/autograd/tensor.h"

namespace headlab {

namespace detail {
/// A gradient on its way: of a node's output or of a leaf.
struct Slot {
  Array array;
  Shape shape;
  DType dtype = DType::f32;
  bool filled = false;
  bool pinned = false;  ///< the array is a fixed place (flat parameter buffer): always written in place
};
}  // namespace detail

/// Where the gradient of one input goes. False when nobody wants it.
class Sink {
 public:
  Sink() = default;
  explicit operator bool() const { return slot_ != nullptr; }
  /// Takes a gradient of the input's shape: moved into an empty slot, added to a filled one. Error: another
  /// shape or type.
  void add(Array gradient);

  struct Destination {
    Array& array;  ///< of the input's shape; uninitialised unless accumulate
    bool
        accumulate;  ///< the kernel must add to what is there (beta = 1) instead of overwriting it (beta = 0)
    double beta() const { return accumulate ? 1 : 0; }
  };
  /// A place that a kernel writes into: every element, and before another sink is touched (both may be the
  /// same tensor).
  Destination open();
  /// Whether no gradient has arrived yet.
  bool empty() const;

 private:
  friend class Tape;
  explicit Sink(detail::Slot* slot) : slot_(slot) {}
  detail::Slot* slot_ = nullptr;
};
using Sinks = std::span<Sink>;

/// Whether a closure may be called again: in a backward that keeps the graph. Where it never is, it may
/// overwrite what it alone holds.
enum class Again : bool { never, possibly };

/// An input's value kept for backward. get() is an error when the value was changed in place since.
class Saved {
 public:
  Saved() = default;
  Saved(const Tensor& tensor, std::string_view op);
  /// Keeps nothing unless `wanted`.
  Saved(const Tensor& tensor, std::string_view op, bool wanted);
  const Array& get() const;
  /// Whether nobody else holds these numbers any more.
  bool alone() const { return value_ && value_.unique(); }

 private:
  Array value_;
  detail::Ref<detail::Version> version_;
  std::int64_t expected_ = 0;
  std::string_view op_;
};

}  // namespace headlab
