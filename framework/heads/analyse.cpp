#include "framework/heads/analyse.h"

#include <algorithm>
#include <set>
#include <utility>

#include "framework/core/check.h"
#include "framework/heads/site_telemetry.h"
#include "framework/heads/specialisation.h"

namespace headlab {

namespace {

// Sums over one half of the held-out set.
struct HalfSums {
  std::vector<Telemetry> layers;
  SiteQuestions sites;                ///< of the first batch
  std::vector<LabelOffsets> targets;  ///< of each `key` target of the task

  const HeadTelemetry& of(HeadId id) const {
    return layers[static_cast<std::size_t>(id.layer)].heads[static_cast<std::size_t>(id.head)];
  }
  PatternSummary summary(HeadId id, AttentionSite site) const {
    const auto question = sites.find(site);
    if (question == sites.end()) return {};
    return pattern_summary(of(id), question->second.telemetry.offsets.front());
  }
  TargetScore score(HeadId id, AttentionSite site, std::size_t target, HeadTarget::Kind kind) const {
    const auto question = sites.find(site);
    if (question == sites.end()) return {};
    const auto label = question->second.label_of(target);
    return label ? target_score(of(id).labels[*label], kind) : TargetScore{};
  }
};

HalfSums sums_over(Model& model, const Task& task, std::uint64_t seed, HeldOut part, std::int64_t batch_size,
                   std::int64_t sequences) {
  const std::vector<HeadTarget> targets = task.head_targets();
  HalfSums sums;
  sums.targets.resize(targets.size());
  for (HeadLayer* layer : head_layers(model)) {
    sums.layers.emplace_back();
    sums.layers.back().heads.resize(static_cast<std::size_t>(layer->heads()));
  }
  const std::int64_t size = std::min(sequences, task.held_out_size(part));
  for (std::int64_t first = 0; first < size; first += batch_size) {
    const Batch batch = task.held_out(seed, first, std::min(batch_size, size - first), part);
    SiteQuestions questions = site_questions(model, targets, batch);
    std::vector<Telemetry> found = layer_telemetry(model, questions, batch);
    for (const auto& entry : questions) {
      const SiteQuestion& question = entry.second;
      for (std::size_t label = 0; label < question.targets.size(); ++label) {
        const std::size_t t = question.targets[label];
        if (targets[t].kind == HeadTarget::Kind::key) {
          sums.targets[t].add(question.labels(label), question.n_k);
        }
      }
    }
    if (first == 0) {
      sums.layers = std::move(found);
      sums.sites = std::move(questions);
    } else {
      for (std::size_t i = 0; i < found.size(); ++i) sums.layers[i].merge(found[i]);
    }
  }
  return sums;
}

HeadReport report_of(HeadId id, HeadLayer& layer, const Needs& needs, const HalfSums& choose,
                     const HalfSums& score, const std::vector<HeadTarget>& targets) {
  HeadReport report;
  report.id = id;
  report.layer = layer.module().path();
  report.site = site_of(layer, needs);
  report.pattern = score.summary(id, report.site);
  report.best_offset = choose.summary(id, report.site).best_offset();
  report.best_offset_share = report.pattern.share_at(report.best_offset);
  report.positional = report.best_offset_share >= positional_share;
  report.sink = report.pattern.sink_mass > sink_share;
  for (std::size_t t = 0; t < targets.size(); ++t) {
    const TargetScore s = score.score(id, report.site, t, targets[t].kind);
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
std::vector<double> strengths(const HeadAnalysis& analysis, const HalfSums& choose, std::size_t t,
                              HeadTarget::Kind kind) {
  std::vector<double> result;
  for (const HeadReport& head : analysis.heads) {
    const TargetScore s = choose.score(head.id, head.site, t, kind);
    result.push_back(s.queries > 0 ? s.strength(kind) : -1);
  }
  return result;
}

void assign_jobs(HeadAnalysis& analysis, const HalfSums& choose) {
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
                           const HalfSums& choose, const HalfSums& score) {
  TargetReport report;
  report.target = target;
  report.baseline_offset = choose.targets[t].best();
  report.baseline = score.targets[t].share(report.baseline_offset);
  double heads = 0;
  double best = -1;
  for (const HeadReport& head : analysis.heads) {
    const TargetScore& s = head.targets[t];
    if (head.clean == t) ++report.clean_heads;
    if (s.queries == 0) continue;
    report.queries = s.queries;  // labels are the same for every head of the site
    heads += 1;
    report.mean_strength += s.strength(target.kind);
    report.mean_relation += s.relation;
    const double relation = choose.score(head.id, head.site, t, target.kind).relation;
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

void describe_targets(HeadAnalysis& analysis, const std::vector<HeadTarget>& targets, const HalfSums& choose,
                      const HalfSums& score) {
  for (std::size_t t = 0; t < targets.size(); ++t) {
    TargetReport report = target_report(analysis, targets[t], t, choose, score);
    if (report.clean_heads > 0) ++analysis.cover;
    analysis.clean_heads += report.clean_heads;
    analysis.targets.push_back(std::move(report));
  }
}

LayerReport layer_report(const HeadAnalysis& analysis, std::int64_t layer) {
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

HeadAnalysis analyse_heads(Model& model, const Task& task, std::uint64_t seed, std::int64_t batch_size,
                           std::int64_t sequences) {
  check(batch_size >= 1, "analyse_heads", "a batch size of {}, needs at least 1", batch_size);
  const Looking looking(model);
  const HalfSums choose = sums_over(model, task, seed, HeldOut::choose, batch_size, sequences);
  const HalfSums score = sums_over(model, task, seed, HeldOut::score, batch_size, sequences);

  HeadAnalysis analysis;
  const std::vector<HeadTarget> targets = task.head_targets();
  for (const HeadId id : all_heads(model)) {
    analysis.heads.push_back(report_of(id, layer_of(model, id), model.needs(), choose, score, targets));
  }
  describe_targets(analysis, targets, choose, score);
  assign_jobs(analysis, choose);
  const std::vector<std::optional<double>> diversity = layer_diversity(model, task, seed, sequences);
  for (std::size_t layer = 0; layer < diversity.size(); ++layer) {
    analysis.layers.push_back(layer_report(analysis, static_cast<std::int64_t>(layer)));
    analysis.layers.back().diversity = diversity[layer];
  }
  describe_model(analysis);
  return analysis;
}

}  // namespace headlab
