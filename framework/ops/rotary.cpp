#include "framework/ops/rotary.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "framework/autograd/node.h"
#include "framework/core/parallel.h"

namespace headlab {

namespace {

// cos and sin of every (position, pair), one after the other.
template <class T>
std::vector<T> table_of(const RotaryOptions& o, std::int64_t positions) {
  const std::int64_t pairs = o.width / 2;
  std::vector<T> table;
  table.reserve(static_cast<std::size_t>(2 * positions * pairs));
  for (std::int64_t t = 0; t < positions; ++t) {
    for (std::int64_t i = 0; i < pairs; ++i) {
      const double frequency = std::pow(o.base, -2.0 * static_cast<double>(i) / static_cast<double>(o.width));
      const double angle = static_cast<double>(t + o.first_position) * frequency;
      table.push_back(static_cast<T>(std::cos(angle)));
      table.push_back(static_cast<T>(std::sin(angle)));
    }
  }
  return table;
}

// y = R x, row by row; direction −1 turns back, which is Rᵀ and so the backward.
template <class T>
Array turn(const Array& x, const RotaryOptions& o, T direction) {
  Array y(x.shape(), x.dtype());
  const std::int64_t width = x.dim(2);
  const std::int64_t tokens = x.dim(1);
  const std::int64_t pairs = o.width / 2;
  const std::int64_t stride = o.pairing == RotaryPairing::halves ? 1 : 2;
  const std::int64_t partner = o.pairing == RotaryPairing::halves ? pairs : 1;
  const std::vector<T> table = table_of<T>(o, tokens);
  const Cost cost{.flops = 6 * static_cast<double>(width),
                  .bytes = 2 * sizeof(T) * static_cast<double>(width)};
  parallel_for(x.dim(0) * tokens, grain_for(cost), cost, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t r = begin; r < end; ++r) {
      const T* from = x.data<T>() + r * width;
      T* to = y.data<T>() + r * width;
      const T* angles = table.data() + (r % tokens) * 2 * pairs;
      for (std::int64_t h = 0; h < o.heads; ++h, from += o.head_size, to += o.head_size) {
        for (std::int64_t i = 0; i < pairs; ++i) {
          const T cos = angles[2 * i];
          const T sin = direction * angles[2 * i + 1];
          const T a = from[i * stride];
          const T b = from[i * stride + partner];
          to[i * stride] = a * cos - b * sin;
          to[i * stride + partner] = a * sin + b * cos;
        }
        std::copy(from + o.width, from + o.head_size, to + o.width);
      }
      const std::int64_t rest = width - o.heads * o.head_size;
      std::memcpy(to, from, static_cast<std::size_t>(rest) * sizeof(T));
    }
  });
  return y;
}

}  // namespace

Tensor rotary(const Tensor& x, const RotaryOptions& given) {
  RotaryOptions o = given;
  if (o.width == 0) o.width = o.head_size;
  check(o.head_size >= 0 && (o.head_size % 2 == 0 || given.width != 0), "rotary", "head size {} is not even",
        o.head_size);
  check(o.width >= 0 && o.width % 2 == 0 && o.width <= o.head_size, "rotary",
        "width {} is not an even number up to the head size {}", o.width, o.head_size);
  check(o.base > 0 && std::isfinite(o.base), "rotary", "base {} is not positive", o.base);
  check(x.rank() == 3 && o.heads >= 0 && x.dim(2) >= o.heads * o.head_size, "rotary",
        "needs [batch, tokens, at least {} heads of {}], not {}", o.heads, o.head_size, x.shape());
  return dispatch(x.dtype(), "rotary", [&](auto zero) {
    using T = decltype(zero);
    return record("rotary", turn<T>(x.value(), o, T{1}), {x},
                  [o](const Array& dy, Sinks dx) { dx[0].add(turn<T>(dy, o, T{-1})); });
  });
}

}  // namespace headlab
