#include "framework/heads/untrained.h"

#include <algorithm>

#include "framework/core/check.h"
#include "framework/core/parallel.h"
#include "framework/core/random.h"
#include "framework/heads/pattern_summary.h"
#include "framework/heads/site_telemetry.h"
#include "framework/heads/weight_figures.h"

namespace headlab {

namespace {

std::int64_t fewest_heads_of_a_site(Model& model) {
  std::map<AttentionSite, std::int64_t> counts;
  for (HeadLayer* layer : head_layers(model)) counts[site_of(*layer, model.needs())] += layer->heads();
  std::int64_t fewest = 0;
  for (const auto& entry : counts) fewest = fewest == 0 ? entry.second : std::min(fewest, entry.second);
  return fewest;
}

using Sites = std::map<AttentionSite, UntrainedHeads::Site>;

/// The heads of one model, as it is now.
Sites scores_of(Model& model, const SiteQuestions& questions, const Batch& batch) {
  const Looking looking(model);
  const std::vector<Telemetry> found = layer_telemetry(model, questions, batch);
  const std::vector<std::optional<double>> copying = copying_scores(model);
  Sites sites;
  std::size_t index = 0;
  std::size_t layer = 0;
  for (HeadLayer* head_layer : head_layers(model)) {
    const AttentionSite site = site_of(*head_layer, model.needs());
    UntrainedHeads::Site& scores = sites[site];
    for (const HeadTelemetry& head : found[layer].heads) {
      const PatternSummary summary = pattern_summary(head, questions.at(site).telemetry.offsets.front());
      scores.sink.push_back(summary.sink_mass);
      scores.uniform.push_back(summary.normalised_entropy);
      if (!copying.empty() && copying[index]) scores.copying.push_back(*copying[index]);
      ++index;
    }
    ++layer;
  }
  return sites;
}

}  // namespace

UntrainedHeads untrained_heads(const ModelBuilder& build, const Needs& needs, const Task& task,
                               std::uint64_t seed, std::int64_t heads) {
  check(static_cast<bool>(build), "untrained heads", "there is no builder of models");
  constexpr std::int64_t sequences = 8;
  const Batch batch =
      task.held_out(seed, 0, std::min(sequences, task.held_out_size(HeldOut::score)), HeldOut::score);
  UntrainedHeads result;
  const std::unique_ptr<Model> model = build(needs);
  const std::int64_t per_model = fewest_heads_of_a_site(*model);
  if (per_model == 0) return result;
  const SiteQuestions questions = site_questions(*model, {}, batch);
  const auto draw = [&](Model& fresh, std::int64_t index) {
    initialise(fresh, hash(hash("untrained heads"), hash(seed, static_cast<std::uint64_t>(index))));
    return scores_of(fresh, questions, batch);
  };
  result.models = (heads + per_model - 1) / per_model;
  std::vector<Sites> all(static_cast<std::size_t>(result.models));
  all[0] = draw(*model, 0);  // on this thread: what is wrong with layers or needs is thrown from here
  // A model a chunk of some; the results are put together in order.
  constexpr std::int64_t at_once = 8;
  parallel_for(result.models - 1, at_once, {.flops = 1e6, .bytes = 0},
               [&](std::int64_t begin, std::int64_t end) {
                 const std::unique_ptr<Model> own = build(needs);
                 for (std::int64_t m = begin + 1; m <= end; ++m)
                   all[static_cast<std::size_t>(m)] = draw(*own, m);
               });
  const auto append = [](std::vector<double>& to, const std::vector<double>& from) {
    to.insert(to.end(), from.begin(), from.end());
  };
  for (const Sites& sites : all) {
    for (const auto& entry : sites) {
      UntrainedHeads::Site& site = result.sites[entry.first];
      append(site.sink, entry.second.sink);
      append(site.uniform, entry.second.uniform);
      append(site.copying, entry.second.copying);
    }
  }
  for (auto& entry : result.sites) {
    for (std::vector<double>* scores : {&entry.second.sink, &entry.second.uniform, &entry.second.copying})
      std::sort(scores->begin(), scores->end());
  }
  return result;
}

}  // namespace headlab
