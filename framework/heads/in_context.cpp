#include <algorithm>

#include "framework/core/check.h"
#include "framework/heads/roles.h"

namespace headlab {

namespace {

struct Sum {
  double loss = 0;
  std::int64_t pairs = 0;

  /// Adds the loss of positions [first, last).
  void add(const Tensor& logits, Batch batch, const Needs& needs, std::int64_t first, std::int64_t last) {
    batch.targets = batch.targets.copy();
    const std::int64_t readouts = batch.targets.dim(2);
    for (std::int64_t i = 0; i < batch.targets.size(); ++i) {
      const std::int64_t position = i / readouts % batch.targets.dim(1);
      if (position < first || position >= last) batch.targets.data<std::int64_t>()[i] = unscored;
    }
    const TaskLoss part = task_loss(logits, batch, needs);
    loss += part.loss.value().item() * static_cast<double>(part.counted);
    pairs += part.counted;
  }
  double mean() const { return loss / static_cast<double>(pairs); }
};

}  // namespace

std::optional<double> in_context_score(Model& model, const Task& task, std::uint64_t seed,
                                       std::int64_t batch_size) {
  check(batch_size >= 1, "in_context_score", "a batch size of {}, needs at least 1", batch_size);
  const Looking looking(model);
  const std::int64_t length = model.needs().context;
  const std::int64_t tenth = (length + 9) / 10;
  Sum early, late;
  const std::int64_t size = task.held_out_size(HeldOut::score);
  for (std::int64_t first = 0; first < size; first += batch_size) {
    const Batch batch = task.held_out(seed, first, std::min(batch_size, size - first), HeldOut::score);
    const Tensor logits = model.logits(batch);
    early.add(logits, batch, model.needs(), tenth, 2 * tenth);
    late.add(logits, batch, model.needs(), length - tenth, length);
  }
  if (early.pairs == 0 || late.pairs == 0) return std::nullopt;
  return late.mean() - early.mean();
}

}  // namespace headlab
