#include "framework/core/shape.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "framework/core/check.h"

namespace headlab {

namespace {
std::string text_of(std::span<const std::int64_t> sizes) {
  std::string text = "[";
  for (std::size_t i = 0; i < sizes.size(); ++i) text += fmt::format("{}{}", i ? ", " : "", sizes[i]);
  return text + "]";
}
}  // namespace

Shape::Shape(std::initializer_list<std::int64_t> sizes) : Shape(std::span(sizes.begin(), sizes.size())) {}

Shape::Shape(std::span<const std::int64_t> sizes) {
  check(sizes.size() <= max_rank, "shape", "{} axes, at most {} are possible", sizes.size(), max_rank);
  rank_ = static_cast<int>(sizes.size());
  // Zeros count as 1 here, so that strides of an empty array cannot overflow either.
  std::int64_t extent = 1;
  for (int i = 0; i < rank_; ++i) {
    const std::int64_t n = sizes[static_cast<std::size_t>(i)];
    if (n < 0) fail("shape", "negative size {} in {}", n, text_of(sizes));
    if (__builtin_mul_overflow(extent, std::max<std::int64_t>(n, 1), &extent)) {
      fail("shape", "{} has more than 2^63 - 1 elements", text_of(sizes));
    }
    sizes_[static_cast<std::size_t>(i)] = n;
    size_ *= n;
  }
}

int Shape::checked_axis(int axis, std::string_view where) const {
  check(axis >= -rank_ && axis < rank_, where, "axis {} is out of range for shape {}", axis, *this);
  return axis < 0 ? axis + rank_ : axis;
}

std::int64_t Shape::product(int from, int to) const {
  std::int64_t n = 1;
  for (int i = from; i < to; ++i) n *= (*this)[i];
  return n;
}

Shape Shape::with(int axis, std::int64_t size) const {
  std::vector<std::int64_t> sizes(begin(), end());
  sizes[static_cast<std::size_t>(checked_axis(axis, "shape"))] = size;
  return Shape(std::span<const std::int64_t>(sizes));
}

Shape Shape::without(int axis) const {
  std::vector<std::int64_t> sizes(begin(), end());
  sizes.erase(sizes.begin() + checked_axis(axis, "shape"));
  return Shape(std::span<const std::int64_t>(sizes));
}

Shape Shape::inserted(int axis, std::int64_t size) const {
  check(axis >= 0 && axis <= rank_, "shape", "cannot insert an axis at {} into {}", axis, *this);
  std::vector<std::int64_t> sizes(begin(), end());
  sizes.insert(sizes.begin() + axis, size);
  return Shape(std::span<const std::int64_t>(sizes));
}

std::string Shape::str() const { return text_of(std::span<const std::int64_t>(begin(), end())); }

Shape broadcast(const Shape& a, const Shape& b, std::string_view where) {
  const int rank = std::max(a.rank(), b.rank());
  std::vector<std::int64_t> sizes(static_cast<std::size_t>(rank));
  for (int i = 1; i <= rank; ++i) {
    const std::int64_t m = i <= a.rank() ? a[a.rank() - i] : 1;
    const std::int64_t n = i <= b.rank() ? b[b.rank() - i] : 1;
    check(m == n || m == 1 || n == 1, where, "shapes {} and {} do not broadcast", a, b);
    sizes[static_cast<std::size_t>(rank - i)] = m == 1 ? n : m;
  }
  return Shape(std::span<const std::int64_t>(sizes));
}

}  // namespace headlab

fmt::format_context::iterator fmt::formatter<headlab::Shape>::format(const headlab::Shape& shape,
                                                                     fmt::format_context& context) const {
  return fmt::format_to(context.out(), "{}", shape.str());
}
