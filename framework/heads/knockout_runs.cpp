#include "framework/heads/knockout_runs.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <map>
#include <numeric>
#include <optional>

#include "framework/core/check.h"
#include "framework/core/parallel.h"
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
  parallel_for(std::ssize(rows), 16, {.bytes = 2 * static_cast<double>(bytes)},
               [&](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t i = begin; i < end; ++i) {
                   const auto from = static_cast<std::size_t>(rows[static_cast<std::size_t>(i)]);
                   std::memcpy(static_cast<char*>(chosen.raw()) + static_cast<std::size_t>(i) * bytes,
                               static_cast<const char*>(x.raw()) + from * bytes, bytes);
                 }
               });
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
    first_ = 0;
    if (intervention_.by_position() && !scored_.empty()) {
      const std::int64_t length = batch.targets.dim(1);
      first_ = length;
      for (const std::int64_t row : scored_) first_ = std::min(first_, row % length);
    }
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
        (std::int64_t{1} << 18) / (examples * length * std::max<std::int64_t>(needs.d_model, 1));
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

  void split(std::optional<std::size_t> layer, std::vector<Prefix> parents, std::vector<Child>& stay,
             std::vector<Child>& fresh) const {
    for (std::size_t p = 0; p < parents.size(); ++p) {
      if (!layer) {
        stay.push_back({p, nullptr, std::move(parents[p])});
        continue;
      }
      std::map<LayerMask, Prefix> parts;
      for (const std::size_t set : parents[p].sets) parts[masks_[set][*layer]].sets.push_back(set);
      for (auto part = parts.begin(); part != parts.end(); ++part) {
        const LayerMask* mask = &masks_[part->second.sets.front()][*layer];
        (part == parts.begin() ? stay : fresh).push_back({p, mask, std::move(part->second)});
      }
    }
  }

  static std::vector<Prefix> prefixes_of(std::vector<Child> group) {
    std::vector<Prefix> prefixes;
    for (Child& child : group) prefixes.push_back(std::move(child.prefix));
    return prefixes;
  }

  // The copies that the group starts from.
  Staged::State gathered(const Staged::State& state, const std::vector<Child>& group) const {
    const std::int64_t examples = batch_->size();
    std::vector<std::int64_t> rows;
    for (const Child& child : group) {
      for (std::int64_t b = 0; b < examples; ++b)
        rows.push_back(static_cast<std::int64_t>(child.parent) * examples + b);
    }
    Staged::State chosen;
    for (const Tensor& tensor : state) chosen.emplace_back(rows_of(tensor.value(), rows));
    return chosen;
  }

  // Every prefix splits into what its sets do with the stage's layer. One part of each goes on with the state
  // as it is; what is new starts from copies of rows, goes ahead by itself and is done with before the rest
  // goes on. That way rows are copied once for a knock-out and not at every layer above it.
  void go(std::int64_t stage, Staged::State state, std::vector<Prefix> prefixes) {
    for (; stage < staged_.stages(); ++stage) {
      const std::optional<std::size_t> layer = changed_at_[static_cast<std::size_t>(stage)];
      std::vector<Child> stay, fresh;
      split(layer, std::move(prefixes), stay, fresh);
      // Where most is new, one group is better than two small ones.
      if (fresh.size() >= stay.size() && stay.size() + fresh.size() <= most_copies()) {
        std::move(fresh.begin(), fresh.end(), std::back_inserter(stay));
        fresh.clear();
        state = gathered(state, stay);
      }
      for (std::size_t from = 0; from < fresh.size(); from += most_copies()) {
        const auto first = fresh.begin() + static_cast<std::ptrdiff_t>(from);
        const std::size_t size = std::min(most_copies(), fresh.size() - from);
        std::vector<Child> group(std::make_move_iterator(first),
                                 std::make_move_iterator(first + static_cast<std::ptrdiff_t>(size)));
        Staged::State own = run(stage, layer, group, gathered(state, group));
        go(stage + 1, std::move(own), prefixes_of(std::move(group)));
      }
      state = run(stage, layer, stay, std::move(state));
      prefixes = prefixes_of(std::move(stay));
    }
    finish(state.back().value(), prefixes);
  }

  Staged::State run(std::int64_t stage, std::optional<std::size_t> layer, const std::vector<Child>& group,
                    Staged::State state) {
    if (layer) {
      std::vector<const LayerMask*> masks;
      for (const Child& child : group) masks.push_back(child.mask);
      intervention_.set(*layer, masks);
    }
    state = staged_.run_stage(stage, inputs(group.size()), std::move(state), first_);
    intervention_.clear();
    result_->run += std::ssize(group);
    return state;
  }

  // Positions without a question are not read out; probes may ask anywhere.
  void finish(const Array& x, const std::vector<Prefix>& prefixes) {
    const std::int64_t length = batch_->targets.dim(1);
    const std::int64_t left_out = length - x.dim(1);
    const std::int64_t width = x.dim(2);
    const auto questions = std::ssize(scored_);
    std::vector<std::int64_t> rows;
    for (std::size_t copy = 0; copy < prefixes.size(); ++copy) {
      const std::int64_t begin = static_cast<std::int64_t>(copy) * batch_->size() * x.dim(1);
      for (const std::int64_t row : scored_) rows.push_back(begin + row - (row / length + 1) * left_out);
    }
    const Array chosen = rows_of(x.reshape({x.dim(0) * x.dim(1), 1, width}), rows);
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
  std::int64_t first_ = 0;  // position, of those read out
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
