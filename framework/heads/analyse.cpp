#include "framework/heads/analyse.h"

#include <algorithm>
#include <set>
#include <utility>

#include "framework/core/check.h"
#include "framework/heads/specialisation.h"

namespace headlab {

namespace {

// Sums over one half of the held-out set.
struct LayerSums {
  PatternStatistics patterns;
  PatternDistances distances;
  std::vector<TargetStatistics> targets;
};

std::vector<LayerSums> sums_over(Model& model, const Task& task, std::uint64_t seed, HeldOut part,
                                 std::int64_t batch_size) {
  const std::vector<HeadLayer*> layers = head_layers(model);
  const std::vector<HeadTarget> targets = task.head_targets();
  std::vector<LayerSums> all(layers.size());
  for (LayerSums& sums : all) {
    for (const HeadTarget& target : targets) sums.targets.emplace_back(target.kind);
  }
  const std::int64_t size = task.held_out_size(part);
  std::vector<std::string> sites;
  for (HeadLayer* layer : layers) sites.push_back(layer->sites.pattern.path());
  const ActivationCache seen(model, sites);
  for (std::int64_t first = 0; first < size; first += batch_size) {
    const Batch batch = task.held_out(seed, first, std::min(batch_size, size - first), part);
    model.logits(batch);
    for (std::size_t i = 0; i < layers.size(); ++i) {
      check(seen.has(sites[i]), "analyse_heads", "layer {} showed no pattern", layers[i]->module().path());
      const Array& pattern = seen[sites[i]];
      const AttentionSite site = site_of(*layers[i], model.needs());
      const Mask mask = mask_of(site, model.needs(), batch);
      const PatternRows counted(pattern, mask, counted_queries(site, batch));
      all[i].patterns.add(counted);
      if (part != HeldOut::choose) all[i].distances.add(counted);
      const PatternRows every(pattern, mask, Array());
      for (std::size_t t = 0; t < targets.size(); ++t) {
        if (targets[t].site == site) all[i].targets[t].add(every, batch.head_targets[t]);
      }
    }
  }
  return all;
}

HeadReport report_of(HeadId id, HeadLayer& layer, const Needs& needs, const LayerSums& choose,
                     const LayerSums& score, const std::vector<HeadTarget>& targets) {
  HeadReport report;
  report.id = id;
  report.layer = layer.module().path();
  report.site = site_of(layer, needs);
  report.pattern = score.patterns.summary(id.head);
  report.best_offset = choose.patterns.summary(id.head).best_offset();
  report.best_offset_share = report.pattern.share_at(report.best_offset);
  report.positional = report.best_offset_share >= positional_share;
  report.sink = report.pattern.sink_mass > sink_share;
  for (std::size_t t = 0; t < targets.size(); ++t) {
    const TargetScore s = score.targets[t].score(id.head);
    if (is_clean(s, targets[t].kind) &&
        (!report.clean ||
         s.strength(targets[t].kind) > report.targets[*report.clean].strength(targets[*report.clean].kind))) {
      report.clean = t;
    }
    report.targets.push_back(s);
  }
  return report;
}

// Strength of each head for target t, on the half where choices are made; negative where it has no queries.
std::vector<double> strengths(const HeadAnalysis& analysis, const std::vector<LayerSums>& choose,
                              std::size_t t, HeadTarget::Kind kind) {
  std::vector<double> result;
  for (const HeadReport& head : analysis.heads) {
    const TargetScore s = choose[static_cast<std::size_t>(head.id.layer)].targets[t].score(head.id.head);
    result.push_back(s.queries > 0 ? s.strength(kind) : -1);
  }
  return result;
}

void assign_jobs(HeadAnalysis& analysis, const std::vector<LayerSums>& choose) {
  std::set<std::size_t> busy;
  for (const HeadTarget::Kind kind : {HeadTarget::Kind::key, HeadTarget::Kind::uniform}) {
    for (std::size_t t = 0; t < analysis.targets.size(); ++t) {
      TargetReport& job = analysis.targets[t];
      if (job.target.kind != kind) continue;
      std::vector<double> strength = strengths(analysis, choose, t, kind);
      if (kind == HeadTarget::Kind::uniform) {
        for (const std::size_t head : busy) strength[head] = -1;
      }
      const auto best = std::max_element(strength.begin(), strength.end());
      const double floor = kind == HeadTarget::Kind::uniform ? clean_entropy : 0;
      if (best == strength.end() || *best < floor) continue;
      job.head = static_cast<std::size_t>(best - strength.begin());
    }
    for (const TargetReport& job : analysis.targets) {
      if (job.head) busy.insert(*job.head);
    }
  }
  analysis.distinct_owners = static_cast<std::int64_t>(busy.size());
}

TargetReport target_report(const HeadAnalysis& analysis, const HeadTarget& target, std::size_t t,
                           const std::vector<LayerSums>& choose, const std::vector<LayerSums>& score) {
  TargetReport report;
  report.target = target;
  double heads = 0;
  double best = -1;
  for (const HeadReport& head : analysis.heads) {
    const TargetScore& s = head.targets[t];
    if (head.clean == t) ++report.clean_heads;
    if (s.queries == 0) continue;
    const TargetStatistics& chosen = choose[static_cast<std::size_t>(head.id.layer)].targets[t];
    if (heads == 0) {  // labels are the same for every head of the site
      report.queries = s.queries;
      report.baseline_offset = chosen.best_offset();
      report.baseline =
          score[static_cast<std::size_t>(head.id.layer)].targets[t].share_of_offset(report.baseline_offset);
    }
    heads += 1;
    report.mean_strength += s.strength(target.kind);
    report.mean_relation += s.relation;
    const double relation = chosen.score(head.id.head).relation;
    if (relation > best) {
      best = relation;
      report.best_relation = s.relation;
    }
  }
  if (heads > 0) {
    report.mean_strength /= heads;
    report.mean_relation /= heads;
  }
  return report;
}

void describe_targets(HeadAnalysis& analysis, const std::vector<HeadTarget>& targets,
                      const std::vector<LayerSums>& choose, const std::vector<LayerSums>& score) {
  for (std::size_t t = 0; t < targets.size(); ++t) {
    TargetReport report = target_report(analysis, targets[t], t, choose, score);
    if (report.clean_heads > 0) ++analysis.cover;
    analysis.clean_heads += report.clean_heads;
    analysis.targets.push_back(std::move(report));
  }
}

LayerReport layer_report(const HeadAnalysis& analysis, std::int64_t layer, const LayerSums& score) {
  LayerReport report;
  std::set<std::size_t> covered;
  std::int64_t clean = 0;
  for (const HeadReport& head : analysis.heads) {
    if (head.id.layer != layer) continue;
    report.layer = head.layer;
    report.site = head.site;
    if (!head.clean) continue;
    covered.insert(*head.clean);
    ++clean;
  }
  report.coverage = static_cast<std::int64_t>(covered.size());
  if (!covered.empty()) report.redundancy = static_cast<double>(clean) / static_cast<double>(covered.size());
  report.diversity = score.distances.diversity();
  return report;
}

void describe_model(HeadAnalysis& analysis) {
  std::set<std::pair<AttentionSite, std::int64_t>> offsets;
  const auto n = static_cast<double>(analysis.heads.size());
  for (const HeadReport& head : analysis.heads) {
    analysis.confidence += head.pattern.confidence / n;
    analysis.normalised_entropy += head.pattern.normalised_entropy / n;
    offsets.emplace(head.site, head.pattern.heaviest_offset());
  }
  analysis.distinct_offsets = static_cast<std::int64_t>(offsets.size());
}

}  // namespace

HeadAnalysis analyse_heads(Model& model, const Task& task, std::uint64_t seed, std::int64_t batch_size) {
  check(batch_size >= 1, "analyse_heads", "a batch size of {}, needs at least 1", batch_size);
  const Looking looking(model);
  const std::vector<LayerSums> choose = sums_over(model, task, seed, HeldOut::choose, batch_size);
  const std::vector<LayerSums> score = sums_over(model, task, seed, HeldOut::score, batch_size);

  HeadAnalysis analysis;
  const std::vector<HeadTarget> targets = task.head_targets();
  for (const HeadId id : all_heads(model)) {
    const auto layer = static_cast<std::size_t>(id.layer);
    analysis.heads.push_back(
        report_of(id, layer_of(model, id), model.needs(), choose[layer], score[layer], targets));
  }
  describe_targets(analysis, targets, choose, score);
  assign_jobs(analysis, choose);
  for (std::size_t layer = 0; layer < score.size(); ++layer) {
    analysis.layers.push_back(layer_report(analysis, static_cast<std::int64_t>(layer), score[layer]));
  }
  describe_model(analysis);
  return analysis;
}

}  // namespace headlab
