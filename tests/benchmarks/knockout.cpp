// Every head of a model of six layers knocked out by itself, and the Shapley values of twelve heads: with
// stages that are shared, and one whole pass a set. `passes` is how many whole passes the work amounts to.
#include "framework/heads/knockout.h"

#include <ctime>

#include <benchmark/benchmark.h>

#include "framework/core/parallel.h"
#include "framework/data/induction.h"
#include "framework/heads/shapley.h"
#include "models/build.h"

namespace headlab {
namespace {

std::unique_ptr<Model> six_layers(const Task& task, std::int64_t heads, std::int64_t mlp) {
  Needs needs = task.needs();
  needs.layers = 6;
  needs.heads = heads;
  needs.mlp = mlp;
  auto model = build_model(needs);
  initialise(*model, 1);
  return model;
}

void singles(benchmark::State& state, bool reuse, std::int64_t mlp) {
  const OneThread one;
  const InductionTask task;
  const auto model = six_layers(task, 4, mlp);
  KnockoutRuns runs;
  for (auto _ : state) {
    runs = knockout_matrix(*model, task, 1, {.sequences = 64, .reuse = reuse}).runs;
  }
  state.counters["passes"] = 25 * static_cast<double>(runs.run) / static_cast<double>(runs.whole);
}

void coalitions(benchmark::State& state, bool reuse) {
  const OneThread one;
  const InductionTask task;
  const auto model = six_layers(task, 2, 0);
  KnockoutRuns runs;
  for (auto _ : state) {
    runs = shapley(*model, task, 1, 0, {.batch_size = 8, .sequences = 8, .reuse = reuse}).runs;
  }
  state.counters["passes"] = 4096 * static_cast<double>(runs.run) / static_cast<double>(runs.whole);
}

BENCHMARK_CAPTURE(singles, shared_stages, true, 0)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(singles, whole_passes, false, 0)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(singles, shared_stages_with_mlp, true, 256)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(singles, whole_passes_with_mlp, false, 256)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(coalitions, shared_stages, true)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(coalitions, whole_passes, false)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace headlab
