#include "framework/heads/untrained.h"

#include <algorithm>

#include "framework/core/check.h"
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
  const Looking looking(*model);
  const SiteQuestions questions = site_questions(*model, {}, batch);
  result.models = (heads + per_model - 1) / per_model;
  for (std::int64_t m = 0; m < result.models; ++m) {
    initialise(*model, hash(hash("untrained heads"), hash(seed, static_cast<std::uint64_t>(m))));
    const std::vector<Telemetry> found = layer_telemetry(*model, questions, batch);
    const std::vector<std::optional<double>> copying = copying_scores(*model);
    std::size_t index = 0;
    std::size_t layer = 0;
    for (HeadLayer* head_layer : head_layers(*model)) {
      const AttentionSite site = site_of(*head_layer, needs);
      UntrainedHeads::Site& scores = result.sites[site];
      for (const HeadTelemetry& head : found[layer].heads) {
        const PatternSummary summary = pattern_summary(head, questions.at(site).telemetry.offsets.front());
        scores.sink.push_back(summary.sink_mass);
        scores.uniform.push_back(summary.normalised_entropy);
        if (!copying.empty() && copying[index]) scores.copying.push_back(*copying[index]);
        ++index;
      }
      ++layer;
    }
  }
  for (auto& entry : result.sites) {
    for (std::vector<double>* scores : {&entry.second.sink, &entry.second.uniform, &entry.second.copying})
      std::sort(scores->begin(), scores->end());
  }
  return result;
}

}  // namespace headlab
