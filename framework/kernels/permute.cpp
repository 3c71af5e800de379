#include "framework/kernels/permute.h"

#include <algorithm>
#include <array>

#include "framework/core/parallel.h"
#include "framework/core/profile.h"

namespace headlab::kernels {

namespace {

struct Axis {
  std::int64_t size, from, to;  // its length, and the steps in x and y
};

// The axes of y, slowest first, without those of size 1, neighbours joined where they are neighbours in x
// too.
int joined_axes(const Shape& x, std::span<const int> order, std::array<Axis, Shape::max_rank>& axes) {
  int count = 0;
  for (const int axis : order) {
    const std::int64_t n = x[axis];
    if (n == 1) continue;
    const std::int64_t step = x.product(axis + 1, x.rank());
    if (count > 0 && axes[static_cast<std::size_t>(count - 1)].from == step * n) {
      auto& last = axes[static_cast<std::size_t>(count - 1)];
      last.size *= n;
      last.from = step;
    } else {
      axes[static_cast<std::size_t>(count++)] = {n, step, 0};
    }
  }
  std::int64_t to = 1;
  for (int k = count - 1; k >= 0; --k) {
    axes[static_cast<std::size_t>(k)].to = to;
    to *= axes[static_cast<std::size_t>(k)].size;
  }
  return count;
}

template <class T>
void put(T* y, T value, bool accumulate) {
  *y = accumulate ? *y + value : value;
}

template <class T>
void permute_any(const T* x, T* y, std::span<const Axis> axes, bool accumulate) {
  // The innermost axis of y (`across`) and that of x (`down`) span a plane, cut into tiles so that reads and
  // writes both use whole cache lines. They are one axis when runs of numbers move as they are.
  const Axis across = axes.back();
  Axis down{1, 0, 0};
  std::array<Axis, Shape::max_rank> rest{};
  int count = 0;
  for (const Axis& axis : axes.first(axes.size() - 1)) {
    if (axis.from == 1) {
      down = axis;
    } else {
      rest[static_cast<std::size_t>(count++)] = axis;
    }
  }
  const std::int64_t tile_across = down.size == 1 ? 4096 : 32;
  const std::int64_t tile_down = 32;
  const std::int64_t tiles_across = (across.size + tile_across - 1) / tile_across;
  const std::int64_t tiles_down = (down.size + tile_down - 1) / tile_down;
  std::int64_t tasks = tiles_across * tiles_down;
  for (int k = 0; k < count; ++k) tasks *= rest[static_cast<std::size_t>(k)].size;
  const std::int64_t size = std::min(tile_across, across.size) * std::min(tile_down, down.size);
  const Cost cost{.flops = 8, .bytes = static_cast<double>(size) * 3 * sizeof(T)};
  parallel_for(tasks, std::max<std::int64_t>(1, 16384 / size), cost,
               [&](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t task = begin; task < end; ++task) {
                   const std::int64_t first_across = task % tiles_across * tile_across;
                   const std::int64_t first_down = task / tiles_across % tiles_down * tile_down;
                   const std::int64_t wide = std::min(tile_across, across.size - first_across);
                   const std::int64_t deep = std::min(tile_down, down.size - first_down);
                   const T* source = x + first_across * across.from + first_down * down.from;
                   T* target = y + first_across + first_down * down.to;
                   std::int64_t index = task / tiles_across / tiles_down;
                   for (int k = count - 1; k >= 0; --k) {
                     const Axis& axis = rest[static_cast<std::size_t>(k)];
                     source += index % axis.size * axis.from;
                     target += index % axis.size * axis.to;
                     index /= axis.size;
                   }
                   if (across.from == 1) {
                     for (std::int64_t i = 0; i < wide; ++i) put(target + i, source[i], accumulate);
                     continue;
                   }
                   for (std::int64_t j = 0; j < deep; ++j) {
                     for (std::int64_t i = 0; i < wide; ++i) {
                       put(target + j * down.to + i, source[i * across.from + j * down.from], accumulate);
                     }
                   }
                 }
               });
}

}  // namespace

void permute(const Array& x, std::span<const int> order, Array& y, bool accumulate) {
  if (x.size() == 0) return;
  profile::count(0, static_cast<double>(accumulate ? 3 * x.bytes() : 2 * x.bytes()));
  std::array<Axis, Shape::max_rank> axes{};
  int count = joined_axes(x.shape(), order, axes);
  if (count == 0) axes[static_cast<std::size_t>(count++)] = {1, 1, 1};
  dispatch(x.dtype(), "transpose", [&](auto zero) {
    using T = decltype(zero);
    permute_any(x.data<T>(), y.data<T>(), std::span<const Axis>(axes.data(), static_cast<std::size_t>(count)),
                accumulate);
  });
}

void invert(std::span<const int> order, std::span<int> inverse) {
  for (std::size_t k = 0; k < order.size(); ++k) {
    inverse[static_cast<std::size_t>(order[k])] = static_cast<int>(k);
  }
}

template <class T>
void copy_block(const T* from, std::int64_t from_stride, T* to, std::int64_t to_stride, std::int64_t rows,
                std::int64_t width, bool accumulate) {
  if (width == 0) return;
  profile::moved<T>((from ? 2 : 1) + (accumulate ? 1 : 0), rows * width);
  // Long rows are cut into columns, so that one row is enough to share among threads.
  constexpr std::int64_t most = 16384;
  const std::int64_t columns = (width + most - 1) / most;
  const std::int64_t size = std::min(width, most);
  const Cost cost{.flops = 4, .bytes = static_cast<double>(size) * 3 * sizeof(T)};
  parallel_for(rows * columns, std::max<std::int64_t>(1, most / size), cost,
               [&](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t task = begin; task < end; ++task) {
                   const std::int64_t row = task / columns;
                   const std::int64_t first = task % columns * most;
                   const std::int64_t count = std::min(most, width - first);
                   T* target = to + row * to_stride + first;
                   if (!from) {
                     std::fill_n(target, count, T{0});
                     continue;
                   }
                   const T* source = from + row * from_stride + first;
                   if (accumulate) {
                     for (std::int64_t i = 0; i < count; ++i) target[i] += source[i];
                   } else {
                     std::copy_n(source, count, target);
                   }
                 }
               });
}
template void copy_block(const float*, std::int64_t, float*, std::int64_t, std::int64_t, std::int64_t, bool);
template void copy_block(const double*, std::int64_t, double*, std::int64_t, std::int64_t, std::int64_t,
                         bool);

}  // namespace headlab::kernels
