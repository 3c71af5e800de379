// Tensor: an array that can take part in a graph of operations and receive a gradient.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string_view>

#include "framework/autograd/ref.h"
#include "framework/core/array.h"

namespace headlab {

namespace detail {
struct Node;
struct Record;
struct Version : Counted {
  std::int64_t value = 0;
};
void retain(Node* node) noexcept;
void drop(Node* node) noexcept;
void retain(Record* record) noexcept;
void drop(Record* record) noexcept;
inline void retain(Version* version) noexcept { raise_count(*version); }
inline void drop(Version* version) noexcept {
  if (lower_count(*version)) delete version;
}
}  // namespace detail

/// A cheap handle, like torch.Tensor: copying it names the same value, gradient and place in the graph. f32
/// or f64 for values that need gradients. Graphs of different threads are independent; one graph belongs to
/// one thread at a time.
class Tensor {
 public:
  /// Undefined: no value. Only assignment and operator bool make sense.
  Tensor() = default;
  /// A leaf. Error: a gradient is asked for integers.
  explicit Tensor(Array value, bool requires_grad = false);

  static Tensor zeros(Shape shape, DType dtype = DType::f32) { return Tensor(Array::zeros(shape, dtype)); }
  static Tensor full(Shape shape, double value, DType dtype = DType::f32) {
    return Tensor(Array::full(shape, value, dtype));
  }
  /// Numbers row by row: Tensor::of({2, 2}, {1.0, 2.0, 3.0, 4.0}); float literals give f32, double literals
  /// f64.
  template <class T>
  static Tensor of(Shape shape, std::initializer_list<T> values, bool requires_grad = false) {
    return Tensor(Array::of<T>(shape, values), requires_grad);
  }
  /// One number, rank 0.
  static Tensor scalar(double value, DType dtype = DType::f32, bool requires_grad = false) {
    return Tensor(Array::full(Shape{}, value, dtype), requires_grad);
  }

  explicit operator bool() const { return static_cast<bool>(record_); }
  /// Error: undefined.
  const Array& value() const;
  const Shape& shape() const { return value().shape(); }
  DType dtype() const { return value().dtype(); }
  int rank() const { return value().rank(); }
  std::int64_t dim(int axis) const { return value().dim(axis); }
  std::int64_t size() const { return value().size(); }
  /// The only element as a double. Error: there is not exactly one.
  double item() const { return value().item(); }

  bool requires_grad() const;
  bool is_leaf() const;
  /// For leaves. Error: the tensor was computed, or holds integers.
  Tensor& set_requires_grad(bool on);

  /// The gradient that backward() left in a leaf. Error: there is none.
  const Array& grad() const;
  bool has_grad() const;
  /// Forgets the gradient; its memory is kept for the next one.
  void clear_grad();

  /// The value for changing in place. Raises the version: a backward that still needs the old value is an
  /// error.
  Array& change();
  /// The same value outside the graph; shares the numbers and the version.
  Tensor detach() const;

  /// Whether both handles name the same tensor.
  bool same_as(const Tensor& other) const { return record_.get() == other.record_.get(); }

  /// For the flat parameter buffer: moves a leaf's value (copied) and its gradients into the given arrays for
  /// good.
  void bind(Array value, Array grad);

 private:
  friend struct detail::Record;
  friend struct detail::Node;
  friend class Saved;
  explicit Tensor(detail::Ref<detail::Record> record) : record_(std::move(record)) {}
  detail::Ref<detail::Record> record_;
};

/// While one lives, operations of this thread record nothing.
class NoGrad {
 public:
  NoGrad();
  ~NoGrad();
  NoGrad(const NoGrad&) = delete;
  NoGrad& operator=(const NoGrad&) = delete;

 private:
  bool before_;
};
bool grad_enabled();

/// Live objects, for tests.
struct GraphCounters {
  std::int64_t tensors = 0;
  std::int64_t nodes = 0;
};
GraphCounters graph_counters();

}  // namespace headlab
