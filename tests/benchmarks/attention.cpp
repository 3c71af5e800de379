// Attention on one thread: forward, forward and backward, with telemetry, and the composite. Counted as
// GFLOP/s of the products that full attention needs, 2 forward and 5 backward of n_q·n_k·d each; a causal
// mask counts all of them, so that its rate shows what skipping saves.
#include "framework/ops/attention.h"

#include <ctime>

#include <benchmark/benchmark.h>

#include "framework/autograd/backward.h"
#include "framework/core/parallel.h"
#include "framework/core/random.h"
#include "framework/nn/attention.h"
#include "framework/ops/reduction.h"

namespace headlab {
namespace {

Tensor some(Shape shape, bool grad) {
  Random random(7, Stream::statistics);
  Array x(shape);
  for (float& value : x.values<float>()) value = static_cast<float>(random.normal());
  return Tensor(x, grad);
}

enum class Way { streaming, composite, telemetry };

struct Shapes {
  std::int64_t batch, heads, tokens, d;
};

AttentionOptions options_of(const Shapes& s, bool causal, Way way) {
  AttentionOptions o{.heads = s.heads, .mask = causal ? Mask::causal() : Mask()};
  if (way == Way::telemetry) o.telemetry = TelemetryOptions{.offsets = {-4, -3, -2, -1, 0}, .keys = {0}};
  return o;
}

void bench(benchmark::State& state, Way way, bool causal, bool with_backward, Shapes s) {
  s.tokens = state.range(0);
  const OneThread one;
  const Shape shape{s.batch, s.tokens, s.heads * s.d};
  const Tensor q = some(shape, with_backward), k = some(shape, with_backward), v = some(shape, with_backward);
  const Array seed = some(shape, false).value();
  const AttentionOptions o = options_of(s, causal, way);
  for (auto _ : state) {
    const AttentionResult r =
        way == Way::composite ? composite::attention(q, k, v, o) : attention(q, k, v, o);
    if (with_backward) {
      for (Tensor t : {q, k, v}) t.clear_grad();
      backward(r.out, {.seed = seed});
    }
    benchmark::DoNotOptimize(r.out.value().raw());
  }
  const double product =
      2 * static_cast<double>(s.batch * s.heads * s.d) * static_cast<double>(s.tokens * s.tokens);
  state.counters["GFLOP/s"] =
      benchmark::Counter(product * (with_backward ? 7 : 2) * 1e-9 * static_cast<double>(state.iterations()),
                         benchmark::Counter::kIsRate);
}

// A whole layer with its projections, forward and backward: what telemetry costs there. Two runs of each,
// turn by turn, so that a noisy machine hits both alike.
void bench_layer(benchmark::State& state, std::int64_t batch, std::int64_t tokens, std::int64_t d_model,
                 std::int64_t heads) {
  const OneThread one;
  MultiHeadAttention layer({.d_model = d_model, .heads = heads});
  initialise(layer, 1);
  const Tensor x = some({batch, tokens, d_model}, true);
  const TelemetryOptions wanted{.offsets = {-7, -6, -5, -4, -3, -2, -1, 0}, .keys = {0}};
  const auto run = [&] {
    const std::clock_t start = std::clock();  // of this process: others may be busy
    const Tensor out = layer(x, {.mask = Mask::causal()}).out;
    backward(sum(out));
    return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  };
  double off = 0, on = 0;
  for (auto _ : state) {
    off += run();
    layer.want_telemetry(wanted);
    on += run();
    layer.want_telemetry({});
  }
  state.counters["off_ms"] = 1e3 * off / static_cast<double>(state.iterations());
  state.counters["telemetry_costs_%"] = 100 * (on / off - 1);
}

void all_lengths(benchmark::internal::Benchmark* b) {
  for (const std::int64_t tokens : {64, 128, 256, 512, 1024, 2048, 4096, 8192}) b->Arg(tokens);
  b->Unit(benchmark::kMillisecond);
}
void short_lengths(benchmark::internal::Benchmark* b) {
  for (const std::int64_t tokens : {64, 256, 1024, 2048}) b->Arg(tokens);
  b->Unit(benchmark::kMillisecond);
}
constexpr Shapes one_head{1, 1, 0, 64};
constexpr Shapes toy{64, 8, 0, 8};

BENCHMARK_CAPTURE(bench, forward_full, Way::streaming, false, false, one_head)->Apply(all_lengths);
BENCHMARK_CAPTURE(bench, forward_causal, Way::streaming, true, false, one_head)->Apply(all_lengths);
BENCHMARK_CAPTURE(bench, both_full, Way::streaming, false, true, one_head)->Apply(all_lengths);
BENCHMARK_CAPTURE(bench, both_causal, Way::streaming, true, true, one_head)->Apply(all_lengths);
BENCHMARK_CAPTURE(bench, forward_full_telemetry, Way::telemetry, false, false, one_head)->Apply(all_lengths);
BENCHMARK_CAPTURE(bench, both_causal_telemetry, Way::telemetry, true, true, one_head)->Apply(all_lengths);
BENCHMARK_CAPTURE(bench, both_full_composite, Way::composite, false, true, one_head)->Apply(short_lengths);
BENCHMARK_CAPTURE(bench, both_causal_composite, Way::composite, true, true, one_head)->Apply(short_lengths);
BENCHMARK_CAPTURE(bench, toy_forward, Way::streaming, true, false, toy)->Arg(16)->Arg(32)->Arg(64);
BENCHMARK_CAPTURE(bench, toy_both, Way::streaming, true, true, toy)->Arg(16)->Arg(32)->Arg(64);
BENCHMARK_CAPTURE(bench, toy_both_telemetry, Way::telemetry, true, true, toy)->Arg(16)->Arg(32)->Arg(64);

// What heads cost: 8 · 128 tokens, 512 wide.
constexpr Shapes h1{8, 1, 0, 512}, h4{8, 4, 0, 128}, h8{8, 8, 0, 64}, h16{8, 16, 0, 32};
BENCHMARK_CAPTURE(bench, base_h1_both, Way::streaming, false, true, h1)->Arg(128);
BENCHMARK_CAPTURE(bench, base_h4_both, Way::streaming, false, true, h4)->Arg(128);
BENCHMARK_CAPTURE(bench, base_h8_both, Way::streaming, false, true, h8)->Arg(128);
BENCHMARK_CAPTURE(bench, base_h16_both, Way::streaming, false, true, h16)->Arg(128);
// Of the training steps of `headlab bench`.
constexpr Shapes toy_2l{32, 4, 0, 16}, nanogpt{12, 4, 0, 32}, nanogpt_6l{4, 6, 0, 64}, gpt2{4, 12, 0, 64};
BENCHMARK_CAPTURE(bench, toy_2l_forward, Way::streaming, true, false, toy_2l)->Arg(32);
BENCHMARK_CAPTURE(bench, toy_2l_both, Way::streaming, true, true, toy_2l)->Arg(32);
BENCHMARK_CAPTURE(bench, nanogpt_cpu_both, Way::streaming, true, true, nanogpt)->Arg(64);
BENCHMARK_CAPTURE(bench, nanogpt_6l_both, Way::streaming, true, true, nanogpt_6l)->Arg(256);
BENCHMARK_CAPTURE(bench, gpt2_both, Way::streaming, true, true, gpt2)->Arg(64);

BENCHMARK_CAPTURE(bench_layer, base_h8, 8, 128, 512, 8)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(bench_layer, long_2k, 1, 2048, 512, 8)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(bench_layer, toy, 64, 32, 64, 8)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace headlab
