// The shape of an array: up to 8 axes, row-major, 64-bit sizes whose product is checked for overflow.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

#include <fmt/core.h>

namespace headlab {

/// A value type; safe to share between threads once built. Shape{} has rank 0 and describes one number.
class Shape {
 public:
  static constexpr int max_rank = 8;

  Shape() = default;
  /// Errors: more than 8 axes; a negative size; an element count over 2^63 - 1 (axes of size 0 count as 1).
  Shape(std::initializer_list<std::int64_t> sizes);
  explicit Shape(std::span<const std::int64_t> sizes);

  int rank() const { return rank_; }
  /// Unchecked; 0 <= axis < rank().
  std::int64_t operator[](int axis) const { return sizes_[static_cast<std::size_t>(axis)]; }
  /// The size of an axis counted from the front (0, 1, …) or from the back (-1, -2, …). Errors name `where`.
  std::int64_t dim(int axis, std::string_view where = "shape") const {
    return (*this)[checked_axis(axis, where)];
  }
  /// Turns -1 into the last axis and so on; an error, naming `where`, when there is no such axis.
  int checked_axis(int axis, std::string_view where) const;

  /// The number of elements.
  std::int64_t size() const { return size_; }
  /// The product of the sizes in [from, to).
  std::int64_t product(int from, int to) const;

  const std::int64_t* begin() const { return sizes_.data(); }
  const std::int64_t* end() const { return sizes_.data() + rank_; }

  /// This shape with one axis replaced, dropped or inserted.
  Shape with(int axis, std::int64_t size) const;
  Shape without(int axis) const;
  Shape inserted(int axis, std::int64_t size) const;

  /// "[2, 5, 7]"
  std::string str() const;

  friend bool operator==(const Shape& a, const Shape& b) {
    if (a.rank_ != b.rank_) return false;
    for (int i = 0; i < a.rank_; ++i) {
      if (a[i] != b[i]) return false;
    }
    return true;
  }

 private:
  std::array<std::int64_t, max_rank> sizes_{};
  int rank_ = 0;
  std::int64_t size_ = 1;
};

/// The shape of `a op b` under broadcasting (aligned at the last axis, size 1 stretches). Error: incompatible
/// sizes.
Shape broadcast(const Shape& a, const Shape& b, std::string_view where);

}  // namespace headlab

template <>
struct fmt::formatter<headlab::Shape> {
  constexpr auto parse(fmt::format_parse_context& context) { return context.begin(); }
  fmt::format_context::iterator format(const headlab::Shape& shape, fmt::format_context& context) const;
};
