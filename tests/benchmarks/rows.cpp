// The kernels that work along rows or on tables and parameters, on one thread, in GB/s of memory that they
// must move at the least.
#include "framework/kernels/rows.h"

#include <vector>

#include <benchmark/benchmark.h>

#include "framework/core/parallel.h"
#include "framework/kernels/elementwise.h"
#include "framework/kernels/gather.h"
#include "framework/kernels/losses.h"
#include "framework/kernels/norms.h"
#include "framework/kernels/optimise.h"

namespace headlab::kernels {
namespace {

std::vector<float> some(std::int64_t n) {
  std::vector<float> x(static_cast<std::size_t>(n));
  for (std::int64_t i = 0; i < n; ++i) x[static_cast<std::size_t>(i)] = static_cast<float>(i % 17) * 0.1F;
  return x;
}

void count(benchmark::State& state, std::int64_t numbers) {
  state.SetBytesProcessed(state.iterations() * numbers * 4);
}

void bench_softmax(benchmark::State& state) {
  const Axis axis{state.range(0), state.range(1), 1};
  const std::vector<float> x = some(axis.outer * axis.n);
  std::vector<float> y = x;
  const OneThread one;
  for (auto _ : state) softmax(x.data(), y.data(), axis);
  count(state, 2 * axis.outer * axis.n);
}
void bench_softmax_backward(benchmark::State& state) {
  const Axis axis{state.range(0), state.range(1), 1};
  const std::vector<float> y = some(axis.outer * axis.n), dy = y;
  std::vector<float> dx = y;
  const OneThread one;
  for (auto _ : state) softmax_backward(y.data(), dy.data(), dx.data(), axis, false);
  count(state, 3 * axis.outer * axis.n);
}
void bench_layer_norm(benchmark::State& state) {
  const Rows shape{state.range(0), state.range(1)};
  const std::vector<float> x = some(shape.rows * shape.n), gain = some(shape.n);
  std::vector<float> y = x, mean = some(shape.rows), r = mean;
  const OneThread one;
  for (auto _ : state) {
    norm(Norm::layer, x.data(), gain.data(), gain.data(), 1e-5F, y.data(), mean.data(), r.data(), shape);
  }
  count(state, 2 * shape.rows * shape.n);
}
void bench_layer_norm_backward(benchmark::State& state) {
  const Rows shape{state.range(0), state.range(1)};
  const std::vector<float> x = some(shape.rows * shape.n), gain = some(shape.n), mean = some(shape.rows);
  std::vector<float> dx = x, gains = some(64 * shape.n), biases = gains;
  const OneThread one;
  for (auto _ : state) {
    norm_backward(Norm::layer, x.data(), gain.data(), mean.data(), mean.data(), x.data(),
                  {dx.data(), false, gains.data(), biases.data()}, shape);
  }
  count(state, 3 * shape.rows * shape.n);
}
void bench_cross_entropy(benchmark::State& state) {
  const std::int64_t rows = state.range(0), classes = state.range(1);
  const std::vector<float> x = some(rows * classes);
  const std::vector<std::int64_t> targets(static_cast<std::size_t>(rows), 1);
  std::vector<float> loss = some(rows), top = loss, log_sum = loss;
  const OneThread one;
  for (auto _ : state) {
    cross_entropy(x.data(), {rows, classes, targets.data()}, loss.data(), top.data(), log_sum.data());
  }
  count(state, rows * classes);
}
void bench_cross_entropy_backward(benchmark::State& state) {
  const std::int64_t rows = state.range(0), classes = state.range(1);
  const std::vector<float> x = some(rows * classes), top(static_cast<std::size_t>(rows), 1.6F);
  const std::vector<float> log_sum(static_cast<std::size_t>(rows), 3);
  const std::vector<std::int64_t> targets(static_cast<std::size_t>(rows), 1);
  std::vector<float> dx = x;
  const OneThread one;
  for (auto _ : state) {
    cross_entropy_backward(x.data(), {rows, classes, targets.data()}, top.data(), log_sum.data(), 0.1F,
                           dx.data(), false);
  }
  count(state, 2 * rows * classes);
}
void bench_gelu(benchmark::State& state) {
  const std::int64_t n = state.range(0) * state.range(1);
  const std::vector<float> x = some(n);
  std::vector<float> y = x;
  const OneThread one;
  for (auto _ : state) apply<Gelu>(x.data(), y.data(), n);
  count(state, 2 * n);
}
void bench_gelu_backward(benchmark::State& state) {
  const std::int64_t n = state.range(0) * state.range(1);
  const std::vector<float> x = some(n), dy = x;
  std::vector<float> dx = x;
  const OneThread one;
  for (auto _ : state) apply_backward<Gelu>(x.data(), dy.data(), dx.data(), n, false);
  count(state, 3 * n);
}
// Tokens, size of the vocabulary, width.
std::vector<std::int64_t> ids_of(std::int64_t count, std::int64_t vocabulary) {
  std::vector<std::int64_t> ids(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) ids[static_cast<std::size_t>(i)] = i * 7919 % vocabulary;
  return ids;
}
void bench_embedding(benchmark::State& state) {
  const std::int64_t tokens = state.range(0), vocabulary = state.range(1), d = state.range(2);
  const std::vector<float> table = some(vocabulary * d);
  const std::vector<std::int64_t> ids = ids_of(tokens, vocabulary);
  std::vector<float> rows = some(tokens * d);
  const OneThread one;
  for (auto _ : state) gather_rows(table.data(), ids.data(), tokens, d, rows.data());
  count(state, 2 * tokens * d);
}
// Into a table that holds the read-out's gradient already, as with tied weights, or a fresh one.
void bench_embedding_backward(benchmark::State& state, bool accumulate) {
  const std::int64_t tokens = state.range(0), vocabulary = state.range(1), d = state.range(2);
  std::vector<float> table = some(vocabulary * d);
  const std::vector<std::int64_t> ids = ids_of(tokens, vocabulary);
  const std::vector<float> rows = some(tokens * d);
  const OneThread one;
  for (auto _ : state)
    scatter_add_rows(rows.data(), ids.data(), tokens, d, table.data(), vocabulary, accumulate);
  count(state, (accumulate ? 3 * tokens : tokens + vocabulary) * d);
}
void bench_column_sums(benchmark::State& state) {
  const std::int64_t rows = state.range(0), n = state.range(1);
  const std::vector<float> x = some(rows * n);
  std::vector<float> out = some(n);
  const OneThread one;
  for (auto _ : state) column_sums(x.data(), rows, n, out.data(), false);
  count(state, rows * n);
}
void bench_adamw(benchmark::State& state) {
  const std::int64_t n = state.range(0);
  const std::vector<float> g = some(n);
  std::vector<float> w = g, m = g, v = g;
  const OneThread one;
  for (auto _ : state)
    adamw(w.data(), g.data(), m.data(), v.data(), n, {0.9, 0.99, 1e-8, 0.999, 1e-3, 1.5, {.factor = 0.5}});
  count(state, 7 * n);
}
void bench_norm_and_scale(benchmark::State& state) {
  const std::int64_t n = state.range(0);
  std::vector<float> g = some(n);
  const OneThread one;
  for (auto _ : state) {
    benchmark::DoNotOptimize(sum_of_squares(g.data(), n, 1));
    scale(g.data(), n, {.factor = 0.9999999});
  }
  count(state, 3 * n);
}

#define HEADLAB_ROWS(name) BENCHMARK(name)->Args({512, 64})->Args({512, 256})->Args({4096, 64})
HEADLAB_ROWS(bench_softmax);
HEADLAB_ROWS(bench_softmax_backward);
HEADLAB_ROWS(bench_layer_norm);
HEADLAB_ROWS(bench_layer_norm_backward);
HEADLAB_ROWS(bench_column_sums);
// Of the training steps of `headlab bench`: their gelu, layer norm and read-out.
#define HEADLAB_STEPS(name) \
  BENCHMARK(name)->Args({1024, 256})->Args({768, 512})->Args({1024, 1536})->Args({256, 3072})
HEADLAB_STEPS(bench_gelu);
HEADLAB_STEPS(bench_gelu_backward);
BENCHMARK(bench_layer_norm)->Args({768, 128})->Args({1024, 384})->Args({256, 768});
BENCHMARK(bench_layer_norm_backward)->Args({768, 128})->Args({1024, 384})->Args({256, 768});
BENCHMARK(bench_cross_entropy)->Args({512, 64})->Args({512, 8192})->Args({1024, 65})->Args({256, 50257});
BENCHMARK(bench_cross_entropy_backward)
    ->Args({512, 64})
    ->Args({512, 8192})
    ->Args({1024, 65})
    ->Args({256, 50257});
#define HEADLAB_TABLES(benchmark) \
  benchmark->Args({1024, 64, 64})->Args({768, 65, 128})->Args({256, 50257, 768})
HEADLAB_TABLES(BENCHMARK(bench_embedding));
HEADLAB_TABLES(BENCHMARK_CAPTURE(bench_embedding_backward, fresh, false));
HEADLAB_TABLES(BENCHMARK_CAPTURE(bench_embedding_backward, added, true));
BENCHMARK(bench_adamw)->Arg(8192)->Arg(1 << 20);
BENCHMARK(bench_norm_and_scale)->Arg(8192)->Arg(1 << 20);

}  // namespace
}  // namespace headlab::kernels
