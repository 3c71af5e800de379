#include "framework/kernels/reduce.h"

#include <algorithm>
#include <array>
#include <vector>

#include "framework/core/parallel.h"
#include "framework/core/profile.h"

namespace headlab::kernels {

namespace {

constexpr std::int64_t piece = 16384;     // of a contiguous row
constexpr std::int64_t block_rows = 256;  // of rows that are added up
constexpr std::int64_t tile = 128;        // columns of a block that one task adds up

template <class T>
double sum_run(const T* x, std::int64_t n) {
  constexpr std::int64_t width = 16;
  std::array<double, width> part{};
  std::int64_t i = 0;
  for (; i + width <= n; i += width) {
    for (std::int64_t l = 0; l < width; ++l) {
      part[static_cast<std::size_t>(l)] += static_cast<double>(x[i + l]);
    }
  }
  for (std::size_t l = 0; i < n; ++i, ++l) part[l] += static_cast<double>(x[i]);
  for (std::size_t half = width / 2; half > 0; half /= 2) {
    for (std::size_t l = 0; l < half; ++l) part[l] += part[l + half];
  }
  return part[0];
}

template <class T>
void finish(double total, T* y, SumOptions options) {
  const T value = static_cast<T>(total / options.divisor);
  *y = options.accumulate ? *y + value : value;
}

// y[i] = Σ_k parts[k] of the k-th partial result, in order.
template <class T>
void merge(const double* parts, std::int64_t outer, std::int64_t count, std::int64_t inner, T* y,
           SumOptions options) {
  const Cost cost{.flops = static_cast<double>(count), .bytes = 8.0 * static_cast<double>(count)};
  parallel_for(outer * inner, 1024, cost, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t at = begin; at < end; ++at) {
      const double* p = parts + at / inner * count * inner + at % inner;
      double total = p[0];
      for (std::int64_t k = 1; k < count; ++k) total += p[k * inner];
      finish(total, y + at, options);
    }
  });
}

template <class T>
void sum_rows(const T* x, std::int64_t outer, std::int64_t n, T* y, SumOptions options) {
  const std::int64_t pieces = std::max<std::int64_t>(1, (n + piece - 1) / piece);
  if (pieces == 1) {
    const Cost cost{.flops = static_cast<double>(n), .bytes = static_cast<double>(n) * sizeof(T)};
    parallel_for(outer, std::max<std::int64_t>(1, piece / std::max<std::int64_t>(1, n)), cost,
                 [&](std::int64_t begin, std::int64_t end) {
                   for (std::int64_t o = begin; o < end; ++o) finish(sum_run(x + o * n, n), y + o, options);
                 });
    return;
  }
  Array parts({outer * pieces}, DType::f64);
  auto* part = parts.data<double>();
  constexpr Cost cost{.flops = piece, .bytes = piece * sizeof(T)};
  parallel_for(outer * pieces, 1, cost, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t k = begin; k < end; ++k) {
      const std::int64_t from = k % pieces * piece;
      part[k] = sum_run(x + k / pieces * n + from, std::min(piece, n - from));
    }
  });
  merge(part, outer, pieces, 1, y, options);
}

template <class T>
void add_rows(const T* x, std::int64_t rows, std::int64_t columns, std::int64_t stride, double* total) {
  std::fill_n(total, columns, 0.0);
  for (std::int64_t r = 0; r < rows; ++r) {
    const T* row = x + r * stride;
    for (std::int64_t i = 0; i < columns; ++i) total[i] += static_cast<double>(row[i]);
  }
}

template <class T>
void sum_columns(const T* x, std::int64_t outer, std::int64_t reduced, std::int64_t inner, T* y,
                 SumOptions options) {
  const std::int64_t blocks = std::max<std::int64_t>(1, (reduced + block_rows - 1) / block_rows);
  const std::int64_t tiles = (inner + tile - 1) / tile;
  const std::int64_t tasks = outer * blocks * tiles;
  const std::int64_t size = std::max<std::int64_t>(1, std::min(reduced, block_rows) * std::min(inner, tile));
  const Cost cost{.flops = static_cast<double>(size), .bytes = static_cast<double>(size) * sizeof(T)};
  Array parts;
  if (blocks > 1) parts = Array({outer * blocks * inner}, DType::f64);
  double* part = blocks > 1 ? parts.data<double>() : nullptr;
  parallel_for(tasks, std::max<std::int64_t>(1, piece / size), cost,
               [&](std::int64_t begin, std::int64_t end) {
                 std::array<double, tile> total;
                 for (std::int64_t task = begin; task < end; ++task) {
                   const std::int64_t column = task % tiles * tile;
                   const std::int64_t block = task / tiles % blocks;
                   const std::int64_t o = task / tiles / blocks;
                   const std::int64_t columns = std::min(tile, inner - column);
                   const std::int64_t rows = std::min(block_rows, reduced - block * block_rows);
                   const T* source = x + (o * reduced + block * block_rows) * inner + column;
                   if (part) {
                     add_rows(source, rows, columns, inner, part + (o * blocks + block) * inner + column);
                     continue;
                   }
                   add_rows(source, rows, columns, inner, total.data());
                   for (std::int64_t i = 0; i < columns; ++i) {
                     finish(total[static_cast<std::size_t>(i)], y + o * inner + column + i, options);
                   }
                 }
               });
  if (part) merge(part, outer, blocks, inner, y, options);
}

template <class T>
void sum_any(const T* x, std::int64_t outer, std::int64_t reduced, std::int64_t inner, T* y,
             SumOptions options) {
  if (outer == 0 || inner == 0) return;
  profile::moved<T>(1, outer * reduced * inner);
  if (inner == 1) {
    sum_rows(x, outer, reduced, y, options);
  } else {
    sum_columns(x, outer, reduced, inner, y, options);
  }
}

}  // namespace

void sum(const float* x, std::int64_t outer, std::int64_t reduced, std::int64_t inner, float* y,
         SumOptions options) {
  sum_any(x, outer, reduced, inner, y, options);
}
void sum(const double* x, std::int64_t outer, std::int64_t reduced, std::int64_t inner, double* y,
         SumOptions options) {
  sum_any(x, outer, reduced, inner, y, options);
}

Axes::Axes(std::span<const int> axes, const Shape& shape, std::string_view where) {
  for (const int given : axes) {
    const int axis = shape.checked_axis(given, where);
    check(!has(axis), where, "axis {} is named twice for shape {}", given, shape);
    insert(axis);
  }
}

Axes Axes::all(const Shape& shape) {
  Axes axes;
  for (int i = 0; i < shape.rank(); ++i) axes.insert(i);
  return axes;
}

Shape Axes::kept(const Shape& shape) const {
  std::vector<std::int64_t> sizes(shape.begin(), shape.end());
  for (int i = 0; i < shape.rank(); ++i) {
    if (has(i)) sizes[static_cast<std::size_t>(i)] = 1;
  }
  return Shape(std::span<const std::int64_t>(sizes));
}

Shape Axes::dropped(const Shape& shape) const {
  std::vector<std::int64_t> sizes;
  for (int i = 0; i < shape.rank(); ++i) {
    if (!has(i)) sizes.push_back(shape[i]);
  }
  return Shape(std::span<const std::int64_t>(sizes));
}

std::int64_t Axes::count(const Shape& shape) const {
  std::int64_t n = 1;
  for (int i = 0; i < shape.rank(); ++i) n *= has(i) ? shape[i] : 1;
  return n;
}

Array sum_axes(const Array& x, Axes axes, double divisor) {
  Array current = x;
  bool fresh = false;
  const auto pass = [&](int from, int to, double by) {
    const Shape shape = current.shape();
    Axes group;
    for (int i = from; i < to; ++i) group.insert(i);
    Array next(group.kept(shape), x.dtype());
    dispatch(x.dtype(), "sum", [&](auto zero) {
      using T = decltype(zero);
      const T* source = std::as_const(current).data<T>();
      sum(source, shape.product(0, from), shape.product(from, to), shape.product(to, shape.rank()),
          next.data<T>(), {.divisor = by});
    });
    current = std::move(next);
    fresh = true;
  };
  int last = x.rank() - 1;  // the last group divides
  while (last >= 0 && !axes.has(last)) --last;
  for (int from = 0; from <= last;) {
    if (!axes.has(from)) {
      ++from;
      continue;
    }
    int to = from;
    // An axis of size 1 neither adds nor separates.
    while (to < x.rank() && (axes.has(to) || x.shape()[to] == 1)) ++to;
    pass(from, to, to > last ? divisor : 1);
    from = to;
  }
  if (!fresh) pass(0, 0, divisor);
  return current;
}

Array sum_to(const Array& gradient, const Shape& shape) {
  if (gradient.shape() == shape) return gradient;
  const Shape& full = gradient.shape();
  const int missing = full.rank() - shape.rank();
  Axes axes;
  for (int i = 0; i < full.rank(); ++i) {
    if (i < missing || shape[i - missing] != full[i]) axes.insert(i);
  }
  return sum_axes(gradient, axes).reshape(shape);
}

}  // namespace headlab::kernels
