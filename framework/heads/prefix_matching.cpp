#include "framework/heads/prefix_matching.h"

#include <algorithm>
#include <optional>

#include "framework/core/check.h"
#include "framework/heads/head_sites.h"

namespace headlab {

namespace {

std::size_t widest_stream(const Needs& needs) {
  std::size_t widest = 0;
  for (std::size_t i = 1; i < needs.streams.size(); ++i) {
    if (needs.streams[i].vocabulary > needs.streams[widest].vocabulary) widest = i;
  }
  return widest;
}

/// Tokens that may be repeated.
std::vector<std::int64_t> words(const Task& task, const Needs& needs, std::size_t stream) {
  std::vector<std::int64_t> special;
  if (stream + 1 == needs.streams.size()) {
    special = task.delimiters();
    if (task.start_token()) special.push_back(*task.start_token());
  }
  std::vector<std::int64_t> ids;
  for (std::int64_t id = 0; id < needs.streams[stream].vocabulary; ++id) {
    if (std::count(special.begin(), special.end(), id) == 0) ids.push_back(id);
  }
  return ids;
}

/// Means over sequences of one head's mass on what followed earlier copies.
std::vector<double> matched(const Array& pattern, std::int64_t head, const PrefixPlan& plan) {
  const std::int64_t heads = pattern.dim(1);
  const std::int64_t length = plan.length();
  const std::int64_t first = plan.start + plan.distinct;
  std::vector<double> means;
  for (std::int64_t b = 0; b < pattern.dim(0); ++b) {
    double sum = 0;
    for (std::int64_t i = first; i < length; ++i) {
      const float* row = pattern.data<float>() + ((b * heads + head) * length + i) * length;
      for (std::int64_t j = i + 1 - plan.distinct; j > plan.start; j -= plan.distinct)
        sum += static_cast<double>(row[j]);
    }
    means.push_back(sum / static_cast<double>(length - first));
  }
  return means;
}

}  // namespace

PrefixPlan prefix_plan(const Task& task, const Needs& needs) {
  PrefixPlan plan;
  if (needs.architecture != Architecture::decoder) {
    plan.absent = "an encoder–decoder reads its own answers, not random tokens";
    return plan;
  }
  if (needs.streams.empty()) {
    plan.absent = "the model reads no tokens";
    return plan;
  }
  plan.start = task.start_token() ? 1 : 0;
  const std::int64_t room = (needs.context - 1) / PrefixPlan::repeats;
  const auto tokens = static_cast<std::int64_t>(words(task, needs, widest_stream(needs)).size());
  plan.distinct = std::min({PrefixPlan::most, room, tokens});
  if (plan.distinct >= PrefixPlan::fewest) return plan;
  plan.absent =
      room < PrefixPlan::fewest
          ? fmt::format("a context of {} holds {} tokens 4 times, and 4 are needed", needs.context, room)
          : fmt::format("there are {} different tokens, and 4 are needed", tokens);
  return plan;
}

Batch prefix_batch(const Task& task, const Needs& needs, const PrefixPlan& plan, std::int64_t examples,
                   std::uint64_t seed, bool in_order) {
  check(plan.absent.empty(), "prefix matching", "{}", plan.absent);
  const std::int64_t length = plan.length();
  Batch batch;
  for (std::size_t s = 0; s < needs.streams.size(); ++s)
    batch.inputs.push_back(Array::zeros({examples, length}, DType::i64));
  batch.targets =
      Array::full({examples, length, static_cast<std::int64_t>(needs.readouts.size())}, unscored, DType::i64);
  const std::size_t widest = widest_stream(needs);
  for (std::int64_t b = 0; b < examples; ++b) {
    Random random(
        seed, Stream::statistics,
        hash(hash(in_order ? "prefix in order" : "prefix shuffled"), static_cast<std::uint64_t>(b)));
    const std::int64_t repeated = PrefixPlan::repeats * plan.distinct;
    std::vector<std::int64_t> order = random.permutation(repeated);
    for (std::size_t s = 0; s < needs.streams.size(); ++s) {
      const std::vector<std::int64_t> ids = words(task, needs, s);
      const auto count = static_cast<std::int64_t>(ids.size());
      const std::vector<std::int64_t> drawn = random.permutation(count);
      std::int64_t* tokens = example_of(batch.inputs[s], b);
      if (plan.start == 1) tokens[0] = s + 1 == needs.streams.size() ? *task.start_token() : ids[0];
      std::vector<std::int64_t> segment;
      for (std::int64_t i = 0; i < plan.distinct; ++i) {
        const std::int64_t pick = s == widest ? drawn[static_cast<std::size_t>(i)] : random.below(count);
        segment.push_back(ids[static_cast<std::size_t>(pick)]);
      }
      for (std::int64_t i = 0; i < repeated; ++i) {
        const std::int64_t from = in_order ? i : order[static_cast<std::size_t>(i)];
        tokens[plan.start + i] = segment[static_cast<std::size_t>(from % plan.distinct)];
      }
    }
  }
  return batch;
}

std::vector<std::optional<PrefixMatching>> prefix_matching(Model& model, const Task& task,
                                                           const PrefixPlan& plan, std::uint64_t seed) {
  std::vector<std::string> names;
  for (HeadLayer* layer : head_layers(model)) names.push_back(layer->sites.pattern.path());
  std::vector<std::optional<PrefixMatching>> result(all_heads(model).size());
  for (const bool in_order : {true, false}) {
    constexpr std::int64_t at_once = 10;
    const std::int64_t examples = in_order ? PrefixPlan::draws : PrefixPlan::shuffled;
    const Batch all = prefix_batch(task, model.needs(), plan, examples, seed, in_order);
    const ActivationCache seen(model, names);
    for (std::int64_t first = 0; first < examples; first += at_once) {
      Batch batch;
      for (const Array& input : all.inputs) batch.inputs.push_back(input.range(first, first + at_once));
      batch.targets = all.targets.range(first, first + at_once);
      model.logits(batch);
      std::size_t index = 0;
      for (HeadLayer* layer : head_layers(model)) {
        const std::string name = layer->sites.pattern.path();
        for (std::int64_t head = 0; head < layer->heads(); ++head, ++index) {
          if (!seen.has(name)) continue;
          if (!result[index]) result[index].emplace();
          for (const double mean : matched(seen[name], head, plan)) {
            if (in_order) {
              result[index]->score += mean / static_cast<double>(examples);
            } else {
              result[index]->shuffled.push_back(mean);
            }
          }
        }
      }
    }
  }
  return result;
}

}  // namespace headlab
