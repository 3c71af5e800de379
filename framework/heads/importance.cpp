#include "framework/heads/importance.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>

#include "framework/autograd/backward.h"
#include "framework/core/check.h"
#include "framework/heads/frozen.h"
#include "framework/heads/intervention.h"
#include "framework/ops/attention.h"
#include "framework/ops/shaping.h"

namespace headlab {

namespace {

std::vector<std::int64_t> pairs_of_examples(const Batch& batch) {
  std::vector<std::int64_t> pairs;
  for (std::int64_t b = 0; b < batch.size(); ++b) {
    const std::int64_t* targets = example_of(batch.targets, b);
    const std::int64_t size = batch.targets.shape().product(1, 3);
    pairs.push_back(size - std::count(targets, targets + size, unscored));
  }
  return pairs;
}

/// Gates of one layer for one batch: a leaf for each example, and one for each token where z is shown.
struct LayerGates {
  Tensor examples;  // [B, heads]
  Tensor tokens;    // [B·n_q, heads]
  std::unique_ptr<GateScope> scope;
  std::unique_ptr<Hook> hook;
};

void add_layer(HeadImportance* heads, const LayerGates& gates, const std::vector<std::int64_t>& pairs,
               std::int64_t counted, double& tokens_seen) {
  const std::int64_t count = gates.examples.dim(1);
  const std::int64_t examples = gates.examples.dim(0);
  const std::int64_t tokens = gates.tokens ? gates.tokens.dim(0) / examples : 0;
  const float* of_example = gates.examples.grad().data<float>();
  const float* gate = gates.examples.value().data<float>();
  for (std::int64_t h = 0; h < count; ++h) {
    double whole = 0;
    for (std::int64_t b = 0; b < examples; ++b) {
      const std::int64_t own = pairs[static_cast<std::size_t>(b)];
      if (own == 0) continue;
      const double factor = static_cast<double>(counted) / static_cast<double>(own);
      const auto at = b * count + h;
      const double slope = factor * static_cast<double>(of_example[at]) * static_cast<double>(gate[at]);
      heads[h].example += std::abs(slope);
      heads[h].effect -= slope;
      whole += slope;
      if (!gates.tokens) continue;
      const float* of_token = gates.tokens.grad().data<float>() + b * tokens * count + h;
      for (std::int64_t t = 0; t < tokens; ++t) {
        *heads[h].token += factor * std::abs(static_cast<double>(of_token[t * count]));
      }
    }
    heads[h].batch += std::abs(whole);
  }
  tokens_seen +=
      static_cast<double>(tokens * (examples - std::count(pairs.begin(), pairs.end(), std::int64_t{0})));
}

std::vector<double> mean_ranks(std::span<const double> values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return values[a] < values[b]; });
  std::vector<double> ranks(values.size());
  for (std::size_t from = 0; from < order.size();) {
    std::size_t to = from;
    while (to < order.size() && values[order[to]] == values[order[from]]) ++to;
    for (std::size_t i = from; i < to; ++i) ranks[order[i]] = static_cast<double>(from + to - 1) / 2;
    from = to;
  }
  return ranks;
}

}  // namespace

std::string name_of(ImportanceForm form) {
  constexpr const char* names[] = {"example", "token", "batch", "effect"};
  return names[static_cast<std::size_t>(form)];
}

double HeadImportance::of(ImportanceForm form) const {
  switch (form) {
    case ImportanceForm::token:
      check(token.has_value(), "importance", "head {} is in a layer that does not show z, as tokens need",
            head.str());
      return *token;
    case ImportanceForm::batch:
      return batch;
    case ImportanceForm::effect:
      return effect;
    case ImportanceForm::example:
      break;
  }
  return example;
}

Importance head_importance(Model& model, const Task& task, std::uint64_t seed,
                           const ImportanceOptions& options) {
  check(options.batch_size >= 1, "importance", "a batch size of {}, needs at least 1", options.batch_size);
  const ModeScope mode(model, false);
  const Frozen frozen(model);
  const std::vector<HeadLayer*> layers = head_layers(model);
  Importance result;
  std::vector<std::size_t> first_head;
  for (HeadLayer* layer : layers) {
    first_head.push_back(result.heads.size());
    for (std::int64_t h = 0; h < layer->heads(); ++h)
      result.heads.push_back({.head = {std::ssize(first_head) - 1, h}, .token = {}});
  }
  std::vector<double> tokens(layers.size());
  std::int64_t size = task.held_out_size(options.part);
  if (options.sequences > 0) size = std::min(size, options.sequences);
  std::int64_t batches = 0;
  for (std::int64_t first = 0; first < size; first += options.batch_size, ++batches) {
    const Batch batch = task.held_out(seed, first, std::min(options.batch_size, size - first), options.part);
    std::vector<LayerGates> gates(layers.size());
    for (std::size_t i = 0; i < layers.size(); ++i) {
      HeadLayer& layer = *layers[i];
      check(!layer.gate() || layer.gate().rank() == 1, "importance",
            "a gate of shape {} is in the way, needs [{}]", layer.gate() ? layer.gate().shape() : Shape{},
            layer.heads());
      const Array open = layer.gate() ? layer.gate().value() : Array::full({layer.heads()}, 1);
      gates[i].examples = Tensor(repeated(open.reshape({1, layer.heads()}), batch.size()).copy(), true);
      gates[i].scope = std::make_unique<GateScope>(layer, gates[i].examples);
      gates[i].hook =
          std::make_unique<Hook>(model, layer.sites.z.path(),
                                 [own = &gates[i], count = layer.heads()](const HookSite&, const Tensor& z) {
                                   const std::int64_t rows = z.dim(0) * z.dim(1);
                                   own->tokens = Tensor(Array::full({rows, count}, 1), true);
                                   const Tensor flat = reshape(z, {rows, 1, z.dim(2)});
                                   const Tensor gated = head_gate(flat, own->tokens, count);
                                   return reshape(gated, z.shape());
                                 });
    }
    const TaskLoss loss = forward_loss(model, batch);
    if (loss.counted == 0) continue;
    backward(loss.loss);
    const std::vector<std::int64_t> pairs = pairs_of_examples(batch);
    result.examples += batch.size() - std::count(pairs.begin(), pairs.end(), std::int64_t{0});
    for (std::size_t i = 0; i < layers.size(); ++i) {
      HeadImportance* heads = result.heads.data() + first_head[i];
      if (gates[i].tokens) {
        for (std::int64_t h = 0; h < layers[i]->heads(); ++h) heads[h].token = heads[h].token.value_or(0);
      }
      if (layers[i]->heads() > 0) add_layer(heads, gates[i], pairs, loss.counted, tokens[i]);
    }
  }
  const auto examples = static_cast<double>(std::max<std::int64_t>(result.examples, 1));
  result.examples_a_batch = examples / static_cast<double>(std::max<std::int64_t>(batches, 1));
  for (HeadImportance& head : result.heads) {
    head.example /= examples;
    head.effect /= examples;
    head.batch /= static_cast<double>(std::max<std::int64_t>(batches, 1));
    if (head.token) *head.token /= std::max(tokens[static_cast<std::size_t>(head.head.layer)], 1.0);
  }
  return result;
}

std::vector<double> values_of(const Importance& importance, ImportanceForm form, bool in_layers) {
  std::vector<double> values;
  std::vector<double> squares;
  for (const HeadImportance& head : importance.heads) {
    values.push_back(head.of(form));
    squares.resize(static_cast<std::size_t>(head.head.layer) + 1);
    squares.back() += values.back() * values.back();
  }
  for (std::size_t i = 0; in_layers && i < values.size(); ++i) {
    const double norm = std::sqrt(squares[static_cast<std::size_t>(importance.heads[i].head.layer)]);
    if (norm > 0) values[i] /= norm;
  }
  return values;
}

std::optional<double> spearman(std::span<const double> a, std::span<const double> b) {
  check(a.size() == b.size(), "spearman", "lists of {} and {}", a.size(), b.size());
  const std::vector<double> ranks_a = mean_ranks(a);
  const std::vector<double> ranks_b = mean_ranks(b);
  const double middle = (static_cast<double>(a.size()) - 1) / 2;
  double aa = 0;
  double bb = 0;
  double ab = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    aa += (ranks_a[i] - middle) * (ranks_a[i] - middle);
    bb += (ranks_b[i] - middle) * (ranks_b[i] - middle);
    ab += (ranks_a[i] - middle) * (ranks_b[i] - middle);
  }
  if (!(aa > 0 && bb > 0)) return std::nullopt;
  return ab / std::sqrt(aa * bb);
}

std::optional<double> kendall(std::span<const double> a, std::span<const double> b) {
  check(a.size() == b.size(), "kendall", "lists of {} and {}", a.size(), b.size());
  double score = 0;
  double apart_a = 0;
  double apart_b = 0;
  const auto sign = [](double x) { return x > 0 ? 1.0 : x < 0 ? -1.0 : 0.0; };
  for (std::size_t i = 0; i < a.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      const double in_a = sign(a[i] - a[j]);
      const double in_b = sign(b[i] - b[j]);
      score += in_a * in_b;
      apart_a += in_a * in_a;
      apart_b += in_b * in_b;
    }
  }
  if (!(apart_a > 0 && apart_b > 0)) return std::nullopt;
  return score / std::sqrt(apart_a * apart_b);
}

}  // namespace headlab
