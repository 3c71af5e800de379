#include "framework/nn/init.h"

#include <cmath>

#include "framework/core/parallel.h"
#include "framework/core/random.h"

namespace headlab {

namespace {

double deviation(const Init& init, double fan_in, double fan_out) {
  switch (init.kind) {
    case Init::Kind::constant:
      return 0;
    case Init::Kind::normal:
      return init.gain * init.value;
    case Init::Kind::xavier_normal:
      return init.gain * std::sqrt(2 / (fan_in + fan_out));
    case Init::Kind::xavier_uniform:
      return init.gain * std::sqrt(6 / (fan_in + fan_out));
    case Init::Kind::fan_in:
      return init.gain / std::sqrt(fan_in);
  }
  return 0;
}

template <class T>
void fill(T* values, std::int64_t n, bool uniform, double scale, std::uint64_t key, std::uint64_t path) {
  constexpr Cost cost{.flops = 500, .bytes = sizeof(T)};
  parallel_for(n, 1024, cost, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const auto words = philox(key, path, static_cast<std::uint64_t>(i));
      const double u = open_uniform(std::uint64_t{words[0]} << 32 | words[1]);
      values[i] = static_cast<T>(scale * (uniform ? 2 * u - 1 : normal_quantile(u)));
    }
  });
}

}  // namespace

void draw(Array& matrix, const Init& init, std::uint64_t seed, std::string_view path) {
  if (init.kind == Init::Kind::constant) return matrix.fill(init.value);
  const double in = matrix.rank() == 0 ? 1 : static_cast<double>(matrix.dim(-1));
  const double out = matrix.rank() < 2 ? 1 : static_cast<double>(matrix.dim(0));
  const double scale = deviation(init, in, out);
  const std::uint64_t key = hash(seed, static_cast<std::uint64_t>(Stream::initial_weights));
  dispatch(matrix.dtype(), path, [&](auto zero) {
    using T = decltype(zero);
    fill(matrix.data<T>(), matrix.size(), init.kind == Init::Kind::xavier_uniform, scale, key, hash(path));
  });
}

}  // namespace headlab
