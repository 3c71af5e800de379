#include "framework/core/array.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <new>
#include <string>

#include "framework/core/pool.h"

namespace headlab {

std::string_view name_of(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return "f32";
    case DType::f64:
      return "f64";
    case DType::i64:
      return "i64";
    case DType::u8:
      return "u8";
  }
  return "?";
}

std::int64_t bytes_of(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return 4;
    case DType::f64:
    case DType::i64:
      return 8;
    case DType::u8:
      return 1;
  }
  return 0;
}

// Lives in the first cache line of its own block; the numbers follow, 64-byte aligned.
struct Array::Buffer {
  std::atomic<std::int64_t> handles{1};
};
namespace {
constexpr std::int64_t buffer_header = 64;
}

Array::Array(Shape shape, DType dtype) : shape_(shape), dtype_(dtype) {
  std::int64_t bytes = 0;
  const bool overflow =
      __builtin_mul_overflow(shape.size(), bytes_of(dtype), &bytes) || bytes > std::int64_t{1} << 62;
  check(!overflow, "array", "{} of {} needs more than 2^62 bytes", shape, name_of(dtype));
  void* block = pool::allocate(bytes + buffer_header);
  check(block != nullptr, "array", "no memory for {} of {}, {} bytes", shape, name_of(dtype), bytes);
  buffer_ = new (block) Buffer;
  data_ = static_cast<char*>(block) + buffer_header;
}

Array::Array(const Array& other) noexcept
    : buffer_(other.buffer_), data_(other.data_), shape_(other.shape_), dtype_(other.dtype_) {
  if (buffer_) buffer_->handles.fetch_add(1, std::memory_order_relaxed);
}

Array::Array(Array&& other) noexcept
    : buffer_(std::exchange(other.buffer_, nullptr)),
      data_(std::exchange(other.data_, nullptr)),
      shape_(std::exchange(other.shape_, Shape{0})),
      dtype_(other.dtype_) {}

Array& Array::operator=(Array other) noexcept {
  std::swap(buffer_, other.buffer_);
  std::swap(data_, other.data_);
  std::swap(shape_, other.shape_);
  std::swap(dtype_, other.dtype_);
  return *this;
}

Array::~Array() {
  if (buffer_ && buffer_->handles.fetch_sub(1, std::memory_order_acq_rel) == 1) {
    buffer_->~Buffer();
    pool::release(buffer_);
  }
}

Array Array::zeros(Shape shape, DType dtype) {
  Array result(shape, dtype);
  result.zero();
  return result;
}

Array Array::full(Shape shape, double value, DType dtype) {
  Array result(shape, dtype);
  result.fill(value);
  return result;
}

template <class T>
Array Array::of(Shape shape, std::span<const T> values) {
  check(static_cast<std::int64_t>(values.size()) == shape.size(), "array",
        "{} values for shape {}, which has {}", values.size(), shape, shape.size());
  Array result(shape, dtype_of<T>);
  std::copy(values.begin(), values.end(), result.data<T>());
  return result;
}
template Array Array::of(Shape, std::span<const float>);
template Array Array::of(Shape, std::span<const double>);
template Array Array::of(Shape, std::span<const std::int64_t>);
template Array Array::of(Shape, std::span<const std::uint8_t>);

Array Array::reshape(std::initializer_list<std::int64_t> sizes) const {
  std::vector<std::int64_t> list(sizes);
  const auto wildcard = std::find(list.begin(), list.end(), -1);
  if (wildcard != list.end()) {
    *wildcard = 1;
    const std::int64_t rest = Shape(std::span<const std::int64_t>(list)).size();
    *wildcard = rest == 0 ? 0 : size() / rest;
  }
  return reshape(Shape(std::span<const std::int64_t>(list)));
}

Array Array::reshape(const Shape& shape) const {
  check(shape.size() == size(), "reshape", "{} has {} elements, {} has {}", shape_, size(), shape,
        shape.size());
  Array result(*this);
  result.shape_ = shape;
  return result;
}

Array Array::range(std::int64_t from, std::int64_t to) const {
  check(rank() > 0, "range", "an array of shape {} has no leading axis", shape_);
  check(0 <= from && from <= to && to <= shape_[0], "range", "[{}, {}) is out of range for shape {}", from,
        to, shape_);
  Array result(*this);
  result.shape_ = shape_.with(0, to - from);
  result.data_ = static_cast<char*>(data_) + from * shape_.product(1, rank()) * bytes_of(dtype_);
  return result;
}

Array Array::copy() const {
  if (!buffer_) return {};
  Array result(shape_, dtype_);
  std::memcpy(result.data_, data_, static_cast<std::size_t>(bytes()));
  return result;
}

namespace {
template <class From, class To>
void convert(const void* from, void* to, std::int64_t n) {
  const auto* source = static_cast<const From*>(from);
  auto* destination = static_cast<To*>(to);
  for (std::int64_t i = 0; i < n; ++i) destination[i] = static_cast<To>(source[i]);
}
template <class From>
void convert_from(const void* from, void* to, std::int64_t n, DType dtype) {
  switch (dtype) {
    case DType::f32:
      return convert<From, float>(from, to, n);
    case DType::f64:
      return convert<From, double>(from, to, n);
    case DType::i64:
      return convert<From, std::int64_t>(from, to, n);
    case DType::u8:
      return convert<From, std::uint8_t>(from, to, n);
  }
}
}  // namespace

Array Array::to(DType dtype) const {
  if (!buffer_) return {};
  Array result(shape_, dtype);
  switch (dtype_) {
    case DType::f32:
      convert_from<float>(data_, result.data_, size(), dtype);
      break;
    case DType::f64:
      convert_from<double>(data_, result.data_, size(), dtype);
      break;
    case DType::i64:
      convert_from<std::int64_t>(data_, result.data_, size(), dtype);
      break;
    case DType::u8:
      convert_from<std::uint8_t>(data_, result.data_, size(), dtype);
      break;
  }
  return result;
}

void Array::zero() {
  if (buffer_) std::memset(data_, 0, static_cast<std::size_t>(bytes()));
}

void Array::fill(double value) {
  switch (dtype_) {
    case DType::f32:
      std::fill_n(data<float>(), size(), static_cast<float>(value));
      break;
    case DType::f64:
      std::fill_n(data<double>(), size(), value);
      break;
    case DType::i64:
      std::fill_n(data<std::int64_t>(), size(), static_cast<std::int64_t>(value));
      break;
    case DType::u8:
      std::fill_n(data<std::uint8_t>(), size(), static_cast<std::uint8_t>(value));
      break;
  }
}

bool Array::unique() const { return buffer_ && buffer_->handles.load(std::memory_order_acquire) == 1; }

double Array::item() const {
  check(buffer_ && size() == 1, "item", "needs an array with one element, not shape {}", shape_);
  return at(0);
}

double Array::at(std::int64_t index) const {
  check(index >= 0 && index < size(), "array", "index {} is out of range for shape {}", index, shape_);
  switch (dtype_) {
    case DType::f32:
      return static_cast<double>(data<float>()[index]);
    case DType::f64:
      return data<double>()[index];
    case DType::i64:
      return static_cast<double>(data<std::int64_t>()[index]);
    case DType::u8:
      return static_cast<double>(data<std::uint8_t>()[index]);
  }
  return 0;
}

void Array::wrong_type(DType asked) const {
  fail("array", "holds {}, asked for {} (shape {})", name_of(dtype_), name_of(asked), shape_);
}

}  // namespace headlab
