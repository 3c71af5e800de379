#include "framework/heads/knockout_runs.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <numeric>
#include <optional>

#include "framework/core/check.h"
#include "framework/train/staged.h"

namespace headlab {

namespace {

/// Sets that agree in all layers up to a stage.
struct Prefix {
  std::vector<std::size_t> sets;
};

Array rows_of(const Array& x, const std::vector<std::int64_t>& rows) {
  Array chosen(x.shape().with(0, std::ssize(rows)), x.dtype());
  if (x.dim(0) == 0) return chosen;
  const auto bytes = static_cast<std::size_t>(x.bytes() / x.dim(0));
  for (std::size_t i = 0; i < rows.size(); ++i) {
    std::memcpy(static_cast<char*>(chosen.raw()) + i * bytes,
                static_cast<const char*>(x.raw()) + static_cast<std::size_t>(rows[i]) * bytes, bytes);
  }
  return chosen;
}

Batch repeated_inputs(const Batch& batch, std::int64_t copies) {
  Batch result;
  for (const Array& input : batch.inputs) result.inputs.push_back(repeated(input, copies));
  if (batch.source_valid) result.source_valid = repeated(batch.source_valid, copies);
  if (batch.valid) result.valid = repeated(batch.valid, copies);
  result.targets = repeated(batch.targets, copies);
  return result;
}

std::vector<std::int64_t> all_rows(const Batch& batch) {
  std::vector<std::int64_t> rows(static_cast<std::size_t>(batch.targets.dim(0) * batch.targets.dim(1)));
  std::iota(rows.begin(), rows.end(), std::int64_t{0});
  return rows;
}

/// Walks the tree of sets for one batch, stage by stage and group by group.
class Walk {
 public:
  Walk(Model& model, Staged& staged, Intervention& intervention, const std::vector<HeadMask>& masks)
      : model_(model), staged_(staged), intervention_(intervention), masks_(masks) {
    changed_at_.resize(static_cast<std::size_t>(staged.stages()));
    const std::vector<HeadLayer*> layers = head_layers(model);
    for (std::size_t i = 0; i < layers.size(); ++i) {
      widest_ = std::max(widest_, layers[i]->heads());
      const std::int64_t stage = staged.stage_of(*layers[i]) + (intervention.changes_patterns() ? 0 : 1);
      changed_at_.at(static_cast<std::size_t>(stage)) = i;
    }
  }

  void run(const Batch& batch, std::vector<AnswerCounts>& counts, KnockoutRuns& result) {
    batch_ = &batch;
    counts_ = &counts;
    result_ = &result;
    inputs_.clear();
    scored_ = batch.probes.empty() ? scored_rows(batch) : all_rows(batch);
    Prefix all;
    for (std::size_t i = 0; i < masks_.size(); ++i) all.sets.push_back(i);
    go(0, staged_.begin(batch), {all});
  }

 private:
  // Copies of the batch that run side by side: enough for long loops, few enough for their numbers to stay
  // near.
  std::size_t most_copies() const {
    const Needs& needs = model_.needs();
    const std::int64_t length = std::max<std::int64_t>({needs.context, needs.source_context, 1});
    const std::int64_t examples = std::max<std::int64_t>(batch_->size(), 1);
    std::int64_t most =
        (std::int64_t{1} << 19) / (examples * length * std::max<std::int64_t>(needs.d_model, 1));
    if (intervention_.holds_patterns()) {
      most = std::min(most, (std::int64_t{1} << 22) / (examples * widest_ * length * length));
    }
    return static_cast<std::size_t>(std::clamp<std::int64_t>(most, 1, 32));
  }

  const Batch& inputs(std::size_t copies) {
    if (copies == 1) return *batch_;
    const auto found = inputs_.find(copies);
    if (found != inputs_.end()) return found->second;
    return inputs_[copies] = repeated_inputs(*batch_, static_cast<std::int64_t>(copies));
  }

  struct Child {
    std::size_t parent;
    const LayerMask* mask;
    Prefix prefix;
  };

  std::vector<Child> children(std::optional<std::size_t> layer, std::vector<Prefix> parents) const {
    std::vector<Child> result;
    for (std::size_t p = 0; p < parents.size(); ++p) {
      if (!layer) {
        result.push_back({p, nullptr, std::move(parents[p])});
        continue;
      }
      std::map<LayerMask, Prefix> split;
      for (const std::size_t set : parents[p].sets) split[masks_[set][*layer]].sets.push_back(set);
      for (auto& entry : split) {
        const LayerMask* mask = &masks_[entry.second.sets.front()][*layer];
        result.push_back({p, mask, std::move(entry.second)});
      }
    }
    return result;
  }

  // The copies that children [from, to) start from.
  Staged::State gathered(const Staged::State& state, const std::vector<Child>& all, std::size_t from,
                         std::size_t to) const {
    const std::int64_t examples = batch_->size();
    std::vector<std::int64_t> rows;
    for (std::size_t i = from; i < to; ++i) {
      for (std::int64_t b = 0; b < examples; ++b)
        rows.push_back(static_cast<std::int64_t>(all[i].parent) * examples + b);
    }
    bool same = std::ssize(rows) == state.back().dim(0);
    for (std::size_t i = 0; same && i < rows.size(); ++i) same = rows[i] == static_cast<std::int64_t>(i);
    if (same) return state;
    Staged::State chosen;
    for (const Tensor& tensor : state) chosen.emplace_back(rows_of(tensor.value(), rows));
    return chosen;
  }

  void go(std::int64_t stage, Staged::State state, std::vector<Prefix> prefixes) {
    if (stage == staged_.stages()) return finish(state.back().value(), prefixes);
    const std::optional<std::size_t> layer = changed_at_[static_cast<std::size_t>(stage)];
    std::vector<Child> all = children(layer, std::move(prefixes));
    const std::size_t most = most_copies();
    for (std::size_t from = 0; from < all.size(); from += most) {
      const std::size_t to = std::min(from + most, all.size());
      Staged::State part = gathered(state, all, from, to);
      if (to == all.size()) state.clear();
      std::vector<const LayerMask*> masks;
      std::vector<Prefix> next;
      for (std::size_t i = from; i < to; ++i) {
        masks.push_back(all[i].mask);
        next.push_back(std::move(all[i].prefix));
      }
      if (layer) intervention_.set(*layer, masks);
      part = staged_.run_stage(stage, inputs(to - from), std::move(part));
      intervention_.clear();
      result_->run += static_cast<std::int64_t>(to - from);
      go(stage + 1, std::move(part), std::move(next));
    }
  }

  // Positions without a question are not read out; probes may ask anywhere.
  void finish(const Array& x, const std::vector<Prefix>& prefixes) {
    const std::int64_t length = x.dim(1);
    const std::int64_t width = x.dim(2);
    const auto questions = std::ssize(scored_);
    std::vector<std::int64_t> rows;
    for (std::size_t copy = 0; copy < prefixes.size(); ++copy) {
      for (const std::int64_t row : scored_)
        rows.push_back(static_cast<std::int64_t>(copy) * batch_->size() * length + row);
    }
    const Array chosen = rows_of(x.reshape({x.dim(0) * length, 1, width}), rows);
    const Array logits = staged_.read_out(Tensor(chosen)).value();
    for (std::size_t copy = 0; copy < prefixes.size(); ++copy) {
      const auto first = static_cast<std::int64_t>(copy) * questions;
      Array own = logits.range(first, first + questions);
      if (questions == batch_->size() * length) own = own.reshape({batch_->size(), length, own.dim(2)});
      for (const std::size_t set : prefixes[copy].sets) {
        (*counts_)[set].add(own, *batch_);
      }
    }
  }

  Model& model_;
  Staged& staged_;
  Intervention& intervention_;
  const std::vector<HeadMask>& masks_;
  std::vector<std::optional<std::size_t>> changed_at_;
  std::int64_t widest_ = 1;
  const Batch* batch_ = nullptr;
  std::vector<AnswerCounts>* counts_ = nullptr;
  KnockoutRuns* result_ = nullptr;
  std::map<std::size_t, Batch> inputs_;
  std::vector<std::int64_t> scored_;
};

}  // namespace

KnockoutRuns answers_without_each(Model& model, const Task& task, std::uint64_t seed,
                                  std::span<const HeadList> sets, const KnockoutOptions& options) {
  check(options.batch_size >= 1, "knock-out", "a batch size of {}, needs at least 1", options.batch_size);
  const Looking looking(model);
  Intervention intervention(model, options.how, options.path, seed);
  std::vector<HeadMask> masks;
  for (const HeadList& set : sets) masks.push_back(mask_of_heads(model, set));
  std::int64_t size = task.held_out_size(options.part);
  if (options.sequences > 0) size = std::min(size, options.sequences);
  // Batches of nearly one size: nobody is left alone who needs another example.
  const std::int64_t batches = (size + options.batch_size - 1) / options.batch_size;
  const auto batch_at = [&](std::int64_t index) {
    const std::int64_t first = size * index / batches;
    return task.held_out(seed, first, size * (index + 1) / batches - first, options.part);
  };
  if (intervention.wants_means()) {
    for (std::int64_t i = 0; i < batches; ++i) intervention.add_to_means(batch_at(i));
  }

  KnockoutRuns result;
  auto* staged = options.reuse && intervention.one_pass() ? dynamic_cast<Staged*>(&model) : nullptr;
  result.staged = staged != nullptr;
  std::vector<AnswerCounts> counts(sets.size(), AnswerCounts(model.needs(), task));
  std::optional<Walk> walk;
  if (staged) walk.emplace(model, *staged, intervention, masks);
  const std::int64_t stages = staged ? staged->stages() : 1;
  for (std::int64_t i = 0; i < batches; ++i) {
    const Batch batch = batch_at(i);
    intervention.prepare(batch, i);
    result.whole += stages * std::ssize(masks);
    if (walk) {
      walk->run(batch, counts, result);
      continue;
    }
    result.run += std::ssize(masks);
    for (std::size_t set = 0; set < masks.size(); ++set) {
      counts[set].add(intervention.logits(masks[set]).value(), batch);
    }
  }
  for (const AnswerCounts& count : counts) result.answers.push_back(count.answers());
  return result;
}

}  // namespace headlab
