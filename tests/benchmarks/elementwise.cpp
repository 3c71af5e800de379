// Elements per second of the elementwise, broadcasting, reducing and moving operations on one thread.
#include "framework/ops/elementwise.h"

#include <benchmark/benchmark.h>

#include "framework/core/parallel.h"
#include "framework/core/random.h"
#include "framework/ops/dropout.h"
#include "framework/ops/operators.h"
#include "framework/ops/reduction.h"
#include "framework/ops/shaping.h"

namespace headlab {
namespace {

Tensor numbers(const Shape& shape) {
  Array x(shape);
  Random random(1, Stream::evaluation);
  for (float& v : x.values<float>()) v = static_cast<float>(random.normal());
  return Tensor(x);
}

template <class F>
void run(benchmark::State& state, std::int64_t elements, const F& f) {
  const OneThread alone;
  for (auto _ : state) {
    const Tensor y = f();
    benchmark::DoNotOptimize(y.value().raw());
  }
  state.SetItemsProcessed(state.iterations() * elements);
}

void register_all() {
  const Tensor x = numbers({512, 256});
  const Tensor y = numbers({512, 256});
  const Tensor row = numbers({256});
  const Tensor column = numbers({512, 1});
  const Tensor small = numbers({64, 64});
  const Tensor heads = numbers({8, 64, 4, 64});
  const auto add = [](const char* name, const Tensor& input, auto f) {
    benchmark::RegisterBenchmark(
        name, [input, f](benchmark::State& state) { run(state, input.size(), [&] { return f(input); }); });
  };
  add("add", x, [=](const Tensor& in) { return in + y; });
  add("add/small", small, [=](const Tensor& in) { return in + small; });
  add("add/row", x, [=](const Tensor& in) { return in + row; });
  add("mul/column", x, [=](const Tensor& in) { return in * column; });
  add("mul/number", x, [=](const Tensor& in) { return in * 3; });
  add("exp", x, [](const Tensor& in) { return exp(in); });
  add("tanh", x, [](const Tensor& in) { return tanh(in); });
  add("relu", x, [](const Tensor& in) { return relu(in); });
  add("softplus", x, [](const Tensor& in) { return softplus(in); });
  add("gelu", x, [](const Tensor& in) { return gelu(in); });
  add("gelu_exact", x, [](const Tensor& in) { return gelu_exact(in); });
  add("sum", x, [](const Tensor& in) { return sum(in); });
  add("sum/rows", x, [](const Tensor& in) { return sum(in, 1); });
  add("sum/columns", x, [](const Tensor& in) { return sum(in, 0); });
  add("max/rows", x, [](const Tensor& in) { return max(in, 1); });
  add("max/columns", x, [](const Tensor& in) { return max(in, 0); });
  add("transpose", x, [](const Tensor& in) { return swap_axes(in, 0, 1); });
  add("transpose/heads", heads, [](const Tensor& in) { return swap_axes(in, 1, 2); });
  add("slice", x, [](const Tensor& in) { return slice(in, 1, 0, 128); });
  add("dropout", x, [](const Tensor& in) { return dropout(in, 0.1, {.key = 1, .counter = 2}); });
}
const bool registered = (register_all(), true);

}  // namespace
}  // namespace headlab
