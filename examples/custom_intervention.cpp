// How to add an intervention: what if a head looked one token further back than it does? A hook replaces its
// weights. If the head answers one question by place, that question is lost and no other.
#include <algorithm>

#include <fmt/core.h>

#include "framework/data/offsets.h"
#include "framework/heads/analyse.h"
#include "framework/nn/hooks.h"
#include "framework/train/trainer.h"
#include "models/build.h"

using namespace headlab;

namespace {

// The weights of one head [B, heads, T, T] moved to the key before; key 0 gives its own to the last allowed.
Tensor look_further_back(const Tensor& pattern, std::int64_t head) {
  Array moved = pattern.value().copy();
  const std::int64_t heads = moved.dim(1), T = moved.dim(2);
  for (std::int64_t b = 0; b < moved.dim(0); ++b)
    for (std::int64_t i = 0; i < T; ++i) {
      float* row = moved.data<float>() + ((b * heads + head) * T + i) * T;
      std::rotate(row, row + 1, row + i + 1);  // causal: keys 0 … i
    }
  return Tensor(moved);
}

}  // namespace

int main() {
  const OffsetsTask task;  // eight questions at each position: which token stood 1, 2, …, 8 places before?
  const RunConfig config{.task = task.name(), .needs = task.needs(), .recipe = task.recipe(), .seed = 0};
  const std::unique_ptr<Model> model = build_model(config.needs);
  train(*model, task, config);

  const HeadReport report = analyse_heads(*model, task, config.seed).heads[0];
  fmt::print("head {} looks at the token {} places before\n", report.id.str(), -report.best_offset);
  const std::vector<double> intact = readout_accuracy(*model, task, config.seed, HeldOut::score);

  std::vector<double> changed;
  {
    const Hook further(*model, "blocks.0.attn.pattern", [&](const HookSite&, const Tensor& pattern) {
      return look_further_back(pattern, report.id.head);
    });
    changed = readout_accuracy(*model, task, config.seed, HeldOut::score);
  }  // the hook is gone, the model as before

  const auto own = static_cast<std::size_t>(-report.best_offset - 1);
  double all = 0, others = 0;
  for (std::size_t q = 0; q < intact.size(); ++q) {
    all += intact[q] / 8;
    others += q == own ? 0 : changed[q] / 7;
  }
  fmt::print("right answers, intact           {:.3f}\n", all);
  fmt::print("one further: its own question   {:.3f}\n", changed[own]);
  fmt::print("one further: the other seven    {:.3f}\n", others);
  return 0;
}
