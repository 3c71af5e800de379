// Array: a contiguous row-major block of numbers without gradients. (buffer, offset, shape); reshape and a
// range of the leading axis share the buffer, everything else copies. There are no strides.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "framework/core/check.h"
#include "framework/core/shape.h"

namespace headlab {

enum class DType : std::uint8_t { f32, f64, i64, u8 };

std::string_view name_of(DType dtype);
std::int64_t bytes_of(DType dtype);

template <class T>
constexpr DType dtype_of = std::is_same_v<T, float>          ? DType::f32
                           : std::is_same_v<T, double>       ? DType::f64
                           : std::is_same_v<T, std::int64_t> ? DType::i64
                                                             : DType::u8;

/// A handle: copying it shares the numbers, copy() does not. The handle's count is thread-safe; the numbers
/// are not guarded. A default-constructed Array is *absent* (like an empty optional): it has no shape and no
/// data.
class Array {
 public:
  Array() = default;
  /// Uninitialised numbers. Error: the size in bytes overflows, or the system has no such memory (names shape
  /// and bytes).
  explicit Array(Shape shape, DType dtype = DType::f32);
  Array(const Array& other) noexcept;
  Array(Array&& other) noexcept;
  Array& operator=(Array other) noexcept;
  ~Array();

  static Array zeros(Shape shape, DType dtype = DType::f32);
  static Array full(Shape shape, double value, DType dtype = DType::f32);
  /// The given numbers, row by row. Error: their count is not the shape's.
  template <class T>
  static Array of(Shape shape, std::span<const T> values);
  template <class T>
  static Array of(Shape shape, const std::vector<T>& values) {
    return of<T>(shape, std::span<const T>(values));
  }
  template <class T>
  static Array of(Shape shape, std::initializer_list<T> values) {
    return of<T>(shape, std::span<const T>(values.begin(), values.size()));
  }

  explicit operator bool() const { return buffer_ != nullptr; }
  const Shape& shape() const { return shape_; }
  DType dtype() const { return dtype_; }
  std::int64_t size() const { return shape_.size(); }
  int rank() const { return shape_.rank(); }
  std::int64_t dim(int axis) const { return shape_.dim(axis, "array"); }
  std::int64_t bytes() const { return shape_.size() * bytes_of(dtype_); }

  /// The first number. Error: T is not the array's type.
  template <class T>
  T* data() {
    require_type(dtype_of<T>);
    return static_cast<T*>(raw());
  }
  template <class T>
  const T* data() const {
    require_type(dtype_of<T>);
    return static_cast<const T*>(raw());
  }
  template <class T>
  std::span<const T> values() const {
    return {data<T>(), static_cast<std::size_t>(size())};
  }
  template <class T>
  std::span<T> values() {
    return {data<T>(), static_cast<std::size_t>(size())};
  }
  void* raw() { return data_; }
  const void* raw() const { return data_; }

  /// The same numbers under another shape; one size may be -1. Error: the element counts differ.
  Array reshape(std::initializer_list<std::int64_t> sizes) const;
  Array reshape(const Shape& shape) const;
  /// Rows [from, to) of the leading axis, sharing the buffer.
  Array range(std::int64_t from, std::int64_t to) const;
  /// A copy with its own buffer.
  Array copy() const;
  /// Converted to another type (a copy, also when the type is the same). f64 → f32 rounds to nearest.
  Array to(DType dtype) const;
  /// Sets every byte to zero, or every element to `value`.
  void zero();
  void fill(double value);

  /// Whether this handle is the only one on its buffer.
  bool unique() const;
  bool shares_buffer_with(const Array& other) const { return buffer_ && buffer_ == other.buffer_; }
  /// The only element, converted to double. Error: there is not exactly one.
  double item() const;
  /// Element by flat index, converted to double.
  double at(std::int64_t index) const;

 private:
  struct Buffer;
  void require_type(DType asked) const {
    if (asked != dtype_) [[unlikely]]
      wrong_type(asked);
  }
  [[noreturn]] void wrong_type(DType asked) const;

  Buffer* buffer_ = nullptr;
  void* data_ = nullptr;
  Shape shape_{0};
  DType dtype_ = DType::f32;
};

/// Calls f with a value of the array's floating type: dispatch(x.dtype(), "exp", [&](auto zero) { using T =
/// decltype(zero); … }). Error: the type is not f32 or f64.
template <class F>
decltype(auto) dispatch(DType dtype, std::string_view where, F&& f) {
  if (dtype == DType::f32) return f(float{});
  check(dtype == DType::f64, where, "needs f32 or f64, not {}", name_of(dtype));
  return f(double{});
}

}  // namespace headlab
