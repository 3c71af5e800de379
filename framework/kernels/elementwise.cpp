#include "framework/kernels/elementwise.h"

#include <type_traits>

#include "framework/core/parallel.h"
#include "framework/core/profile.h"
#include "framework/kernels/elementwise_math.h"

namespace headlab::kernels {

namespace {
constexpr std::int64_t grain = 8192;  // a multiple of the lanes: only the array's end has a tail
template <class T>
constexpr Cost cost{.flops = std::is_same_v<T, float> ? 16.0 : 160.0, .bytes = 2 * sizeof(T)};
}  // namespace

template <class Function, class T>
void apply(const T* x, T* y, std::int64_t n) {
  profile::moved<T>(2, n);
  parallel_for(n, grain, cost<T>, [&](std::int64_t begin, std::int64_t end) {
    if constexpr (std::is_same_v<T, float>) {
      std::int64_t i = begin;
      for (; i + lanes <= end; i += lanes) store(y + i, value(Function{}, load(x + i)));
      if (i < end) store_masked(y + i, value(Function{}, load_masked(x + i, end - i, 1)), end - i);
    } else {
      for (std::int64_t i = begin; i < end; ++i) y[i] = value(Function{}, x[i]);
    }
  });
}

template <class Function, class T>
void apply_backward(const T* kept, const T* dy, T* dx, std::int64_t n, bool accumulate) {
  profile::moved<T>(accumulate ? 4 : 3, n);
  parallel_for(n, grain, cost<T>, [&](std::int64_t begin, std::int64_t end) {
    if constexpr (std::is_same_v<T, float>) {
      std::int64_t i = begin;
      for (; i + lanes <= end; i += lanes) {
        f32x16 g = gradient(Function{}, load(dy + i), load(kept + i));
        if (accumulate) g = load(dx + i) + g;
        store(dx + i, g);
      }
      if (i < end) {
        const mask16 m = first_lanes(end - i);
        f32x16 g = gradient(Function{}, load_masked(dy + i, m, 0), load_masked(kept + i, m, 1));
        if (accumulate) g = load_masked(dx + i, m, 0) + g;
        store_masked(dx + i, g, m);
      }
    } else {
      for (std::int64_t i = begin; i < end; ++i) {
        const double g = gradient(Function{}, dy[i], kept[i]);
        dx[i] = accumulate ? dx[i] + g : g;
      }
    }
  });
}

#define HEADLAB_INSTANTIATE(Function)                                                             \
  template void apply<Function>(const float*, float*, std::int64_t);                              \
  template void apply<Function>(const double*, double*, std::int64_t);                            \
  template void apply_backward<Function>(const float*, const float*, float*, std::int64_t, bool); \
  template void apply_backward<Function>(const double*, const double*, double*, std::int64_t, bool);
HEADLAB_INSTANTIATE(Exp)
HEADLAB_INSTANTIATE(Log)
HEADLAB_INSTANTIATE(Sqrt)
HEADLAB_INSTANTIATE(Relu)
HEADLAB_INSTANTIATE(Silu)
HEADLAB_INSTANTIATE(Sigmoid)
HEADLAB_INSTANTIATE(Tanh)
HEADLAB_INSTANTIATE(Softplus)
HEADLAB_INSTANTIATE(Gelu)
HEADLAB_INSTANTIATE(GeluExact)
#undef HEADLAB_INSTANTIATE

}  // namespace headlab::kernels
