#include "framework/ops/shaping.h"

#include <algorithm>

#include "framework/autograd/node.h"
#include "framework/kernels/permute.h"

namespace headlab {

namespace {

// Copies part [from, from + part's size) of an axis of `whole`, which is [outer, axis, inner] for this
// purpose, out of it or into it.
struct Columns {
  std::int64_t outer, inner, stride;  // rows, numbers in one step of the axis, numbers in a row

  Columns(const Shape& whole, int axis)
      : outer(whole.product(0, axis)),
        inner(whole.product(axis + 1, whole.rank())),
        stride(whole[axis] * inner) {}

  void read(const Array& whole, std::int64_t from, std::int64_t to, Array& part, bool accumulate) const {
    dispatch(whole.dtype(), "slice", [&](auto zero) {
      using T = decltype(zero);
      const std::int64_t width = (to - from) * inner;
      kernels::copy_block(whole.data<T>() + from * inner, stride, part.data<T>(), width, outer, width,
                          accumulate);
    });
  }
  // An absent part stands for zeros.
  void write(const Array& part, Array& whole, std::int64_t from, std::int64_t to, bool accumulate) const {
    if (!part && accumulate) return;
    dispatch(whole.dtype(), "slice", [&](auto zero) {
      using T = decltype(zero);
      const std::int64_t width = (to - from) * inner;
      kernels::copy_block(part ? part.data<T>() : nullptr, width, whole.data<T>() + from * inner, stride,
                          outer, width, accumulate);
    });
  }
};

Tensor reshaped(const Tensor& x, Array y) {
  return record_view("reshape", std::move(y), x,
                     [shape = x.shape()](const Array& dy, Sinks dx) { dx[0].add(dy.reshape(shape)); });
}

void check_type(const Tensor& x, std::string_view op) {
  dispatch(x.dtype(), op, [](auto) {});
}

}  // namespace

Tensor reshape(const Tensor& x, std::initializer_list<std::int64_t> sizes) {
  return reshaped(x, x.value().reshape(sizes));
}
Tensor reshape(const Tensor& x, const Shape& shape) { return reshaped(x, x.value().reshape(shape)); }

// y[i_order[0], i_order[1], …] = x[i_0, i_1, …]: dx is dy under the inverse order.
Tensor transpose(const Tensor& x, const std::vector<int>& order) {
  check_type(x, "transpose");
  const Shape& shape = x.shape();
  std::vector<int> axes;
  std::vector<std::int64_t> sizes;
  for (const int given : order) {
    const int axis = shape.checked_axis(given, "transpose");
    check(std::find(axes.begin(), axes.end(), axis) == axes.end(), "transpose",
          "axis {} is named twice for shape {}", given, shape);
    axes.push_back(axis);
    sizes.push_back(shape[axis]);
  }
  check(static_cast<int>(axes.size()) == shape.rank(), "transpose", "an order of {} axes for shape {}",
        axes.size(), shape);
  Array y(Shape(std::span<const std::int64_t>(sizes)), x.dtype());
  kernels::permute(x.value(), axes, y, false);
  std::vector<int> inverse(axes.size());
  kernels::invert(axes, inverse);
  return record("transpose", std::move(y), {x}, [inverse](const Array& dy, Sinks dx) {
    const Sink::Destination to = dx[0].open();
    kernels::permute(dy, inverse, to.array, to.accumulate);
  });
}

Tensor swap_axes(const Tensor& x, int a, int b) {
  const int first = x.shape().checked_axis(a, "swap_axes");
  const int second = x.shape().checked_axis(b, "swap_axes");
  std::vector<int> order;
  for (int i = 0; i < x.rank(); ++i) order.push_back(i == first ? second : i == second ? first : i);
  return transpose(x, order);
}

// y = x[from … to): dx is dy there and nothing elsewhere.
Tensor slice(const Tensor& x, int axis, std::int64_t from, std::int64_t to) {
  check_type(x, "slice");
  const Shape shape = x.shape();
  const int k = shape.checked_axis(axis, "slice");
  check(0 <= from && from <= to && to <= shape[k], "slice",
        "[{}, {}) is out of range for axis {} of shape {}", from, to, axis, shape);
  const auto backward = [shape, k, from, to](const Array& dy, Sinks dx) {
    const Sink::Destination into = dx[0].open();
    const Columns columns(shape, k);
    columns.write({}, into.array, 0, from, into.accumulate);
    columns.write(dy, into.array, from, to, into.accumulate);
    columns.write({}, into.array, to, shape[k], into.accumulate);
  };
  const Shape result = shape.with(k, to - from);
  const Columns columns(shape, k);
  if (columns.outer == 1) {
    const Array rows = x.value().reshape({shape[k], columns.inner}).range(from, to);
    return record_view("slice", rows.reshape(result), x, backward);
  }
  Array y(result, x.dtype());
  columns.read(x.value(), from, to, y, false);
  return record("slice", std::move(y), {x}, backward);
}

// One node with an output for each piece, so that dx is written once: dx is the pieces' dy side by side.
std::vector<Tensor> split(const Tensor& x, int axis, const std::vector<std::int64_t>& sizes) {
  check_type(x, "split");
  const Shape shape = x.shape();
  const int k = shape.checked_axis(axis, "split");
  std::int64_t total = 0;
  for (const std::int64_t size : sizes) {
    check(size >= 0 && size <= shape[k] - total, "split",
          "a piece of {} does not fit into axis {} of shape {}", size, axis, shape);
    total += size;
  }
  check(!sizes.empty() && total == shape[k], "split", "{} pieces of {} in all for axis {} of shape {}",
        sizes.size(), total, axis, shape);
  const Columns columns(shape, k);
  std::vector<Array> pieces;
  std::int64_t at = 0;
  for (const std::int64_t size : sizes) {
    pieces.emplace_back(shape.with(k, size), x.dtype());
    columns.read(x.value(), at, at + size, pieces.back(), false);
    at += size;
  }
  return record_outputs(
      "split", std::move(pieces), {x}, [shape, k, sizes](std::span<const Array> dy, Sinks dx) {
        const Sink::Destination into = dx[0].open();
        std::int64_t from = 0;
        for (std::size_t i = 0; i < sizes.size(); ++i) {
          Columns(shape, k).write(dy[i], into.array, from, from + sizes[i], into.accumulate);
          from += sizes[i];
        }
      });
}

std::vector<Tensor> split(const Tensor& x, int axis, std::int64_t parts) {
  const std::int64_t n = x.shape().dim(axis, "split");
  check(parts >= 1 && n % parts == 0, "split", "axis {} of shape {} does not split into {} equal parts", axis,
        x.shape(), parts);
  return split(x, axis, std::vector<std::int64_t>(static_cast<std::size_t>(parts), n / parts));
}

// y = the inputs side by side: each dx is its part of dy.
Tensor concat(std::span<const Tensor> tensors, int axis) {
  check(!tensors.empty(), "concat", "needs at least one tensor");
  const Shape first = tensors[0].shape();
  const DType dtype = tensors[0].dtype();
  check_type(tensors[0], "concat");
  const int k = first.checked_axis(axis, "concat");
  std::vector<std::int64_t> ends;
  std::int64_t total = 0;
  for (const Tensor& tensor : tensors) {
    const Shape& shape = tensor.shape();
    check(tensor.dtype() == dtype, "concat", "operands differ in type: {} of shape {} and {} of shape {}",
          name_of(dtype), first, name_of(tensor.dtype()), shape);
    check(shape.rank() == first.rank() && shape.with(k, 0) == first.with(k, 0), "concat",
          "shapes {} and {} differ elsewhere than at axis {}", first, shape, axis);
    total += shape[k];
    ends.push_back(total);
  }
  Array y(first.with(k, total), dtype);
  const Columns columns(y.shape(), k);
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    columns.write(tensors[i].value(), y, i ? ends[i - 1] : 0, ends[i], false);
  }
  return record("concat", y, tensors, [k, ends, shape = y.shape()](const Array& dy, Sinks dx) {
    for (std::size_t i = 0; i < ends.size(); ++i) {
      if (!dx[i]) continue;
      const Sink::Destination to = dx[i].open();
      Columns(shape, k).read(dy, i ? ends[i - 1] : 0, ends[i], to.array, to.accumulate);
    }
  });
}
Tensor concat(std::initializer_list<Tensor> tensors, int axis) {
  return concat(std::span<const Tensor>(tensors.begin(), tensors.size()), axis);
}

}  // namespace headlab
