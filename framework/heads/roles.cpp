#include "framework/heads/roles.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "framework/core/check.h"
#include "framework/core/random.h"
#include "framework/heads/prefix_matching.h"

namespace headlab {

namespace {

using Kind = RoleScore::Kind;

Kind kind_of(PatternRole role) {
  switch (role) {
    case PatternRole::previous:
      return Kind::previous;
    case PatternRole::next:
      return Kind::next;
    case PatternRole::self:
      return Kind::self;
    case PatternRole::offset:
      return Kind::offset;
    case PatternRole::fixed_key:
      return Kind::fixed_key;
    case PatternRole::delimiter:
      return Kind::delimiter;
    case PatternRole::duplicate:
      return Kind::duplicate;
    case PatternRole::relation:
      break;
  }
  return Kind::relation;
}

std::string label_of(const PatternScore& score, const std::vector<HeadTarget>& targets) {
  switch (score.role) {
    case PatternRole::previous:
      return "previous token";
    case PatternRole::next:
      return "next token";
    case PatternRole::self:
      return "its own token";
    case PatternRole::offset:
      return score.which == 0 ? "offset 0" : fmt::format("offset {:+}", score.which);
    case PatternRole::fixed_key:
      return fmt::format("always key {}", score.which);
    case PatternRole::delimiter:
      return "delimiters";
    case PatternRole::duplicate:
      return "earlier copies of its token";
    case PatternRole::relation:
      break;
  }
  return fmt::format("looks up {}", targets[static_cast<std::size_t>(score.which)].name);
}

/// Fills in holds and strength.
RoleScore judged(RoleScore role, bool further = true) {
  role.holds = further && role.score > role.null.threshold && role.score >= role.floor;
  if (role.holds && role.null.median < 1)
    role.strength = std::clamp((role.score - role.null.median) / (1 - role.null.median), 0.0, 1.0);
  return role;
}

RoleScore simple(Kind kind, std::string name, double score, const std::vector<double>& null, double floor) {
  RoleScore role;
  role.kind = kind;
  role.name = std::move(name);
  role.score = score;
  role.null = null_figures(null);
  role.floor = floor;
  return judged(std::move(role));
}

RoleScore of_pattern(const PatternScore& score, const HeadReport& head, const HeadAnalysis& analysis,
                     const std::vector<HeadTarget>& targets) {
  RoleScore role;
  role.kind = kind_of(score.role);
  role.name = label_of(score, targets);
  role.score = score.score;
  role.null = null_figures(score.null);
  role.floor = mass_floor;
  bool syntactic = true;
  if (score.role == PatternRole::relation) {
    const auto target = static_cast<std::size_t>(score.which);
    role.relation_accuracy = head.targets[target].relation;
    role.baseline = analysis.targets[target].baseline;
    syntactic = analysis.targets[target].syntactic(head.targets[target]);
  }
  return judged(std::move(role), syntactic);
}

/// Means of as many shuffled sequences as the score has, drawn at random.
std::vector<double> means_of(const std::vector<double>& sequences, std::int64_t draws, std::uint64_t seed) {
  std::vector<double> means;
  Random random(seed, Stream::statistics, hash("prefix null"));
  for (std::int64_t d = 0; d < draws; ++d) {
    double sum = 0;
    for (std::int64_t i = 0; i < PrefixPlan::draws; ++i)
      sum += sequences[static_cast<std::size_t>(random.below(std::ssize(sequences)))];
    means.push_back(sum / static_cast<double>(PrefixPlan::draws));
  }
  std::sort(means.begin(), means.end());
  return means;
}

void add_untrained_roles(HeadRoles& head, const HeadReport& report, const UntrainedHeads& untrained) {
  const auto found = untrained.sites.find(report.site);
  if (found == untrained.sites.end() || report.pattern.queries == 0) return;
  const UntrainedHeads::Site& null = found->second;
  head.scores.push_back(
      simple(Kind::sink, "first token (sink)", report.pattern.sink_mass, null.sink, mass_floor));
  RoleScore even =
      simple(Kind::uniform, "even attention", report.pattern.normalised_entropy, null.uniform, uniform_floor);
  even.null.threshold = 1 - uniform_share * (1 - even.null.threshold);
  even.strength = 0;
  head.scores.push_back(judged(std::move(even)));
  if (!head.weights || !head.weights->copying || null.copying.empty()) return;
  // One test of two sides: its size against the sizes of untrained heads, then its sign.
  const double copying = *head.weights->copying;
  std::vector<double> sizes;
  for (const double score : null.copying) sizes.push_back(std::abs(score));
  std::sort(sizes.begin(), sizes.end());
  head.scores.push_back(simple(copying < 0 ? Kind::anti_copying : Kind::copying,
                               copying < 0 ? "anti-copying" : "copying", std::abs(copying), sizes,
                               copying_floor));
}

bool writes(Kind kind) { return kind == Kind::copying || kind == Kind::anti_copying; }

void conclude(HeadRoles& head) {
  std::vector<double> strengths;
  for (std::size_t i = 0; i < head.scores.size(); ++i) {
    const RoleScore& role = head.scores[i];
    strengths.push_back(role.strength);
    if (!role.holds) continue;
    const RoleScore* main = head.main ? &head.scores[*head.main] : nullptr;
    const bool looks_more = main && writes(main->kind) && !writes(role.kind);
    const bool looks_less = main && !writes(main->kind) && writes(role.kind);
    if (!main || looks_more || (!looks_less && role.strength > main->strength)) head.main = i;
  }
  head.specialisation = specialisation_of(strengths);
}

std::vector<LayerRoles> layers_of(const std::vector<HeadRoles>& heads, const HeadAnalysis& analysis) {
  std::vector<LayerRoles> layers;
  std::vector<std::set<std::string>> roles;
  for (std::size_t h = 0; h < heads.size(); ++h) {
    const auto layer = static_cast<std::size_t>(heads[h].id.layer);
    if (layers.size() <= layer) layers.resize(layer + 1);
    if (roles.size() <= layer) roles.resize(layer + 1);
    layers[layer].layer = analysis.heads[h].layer;
    if (heads[h].main) ++layers[layer].heads_with_role;
    for (const RoleScore* role : heads[h].held()) roles[layer].insert(role->name);
  }
  for (std::size_t i = 0; i < layers.size(); ++i) {
    layers[i].coverage = std::ssize(roles[i]);
    if (layers[i].coverage > 0) {
      layers[i].redundancy =
          static_cast<double>(layers[i].heads_with_role) / static_cast<double>(layers[i].coverage);
    }
  }
  return layers;
}

}  // namespace

NullFigures null_figures(const std::vector<double>& sorted) {
  check(!sorted.empty(), "role", "there is no null to compare with");
  const std::size_t n = sorted.size();
  NullFigures figures;
  figures.draws = std::ssize(sorted);
  figures.median = n % 2 == 1 ? sorted[n / 2] : (sorted[n / 2 - 1] + sorted[n / 2]) / 2;
  const auto above = static_cast<std::size_t>(std::floor(null_share * static_cast<double>(n)));
  figures.threshold = sorted[std::min(above, n - 1)];
  return figures;
}

std::string name_of(Kind kind) {
  constexpr const char* names[] = {"previous",  "self",      "next",        "offset", "fixed_key",
                                   "delimiter", "duplicate", "relation",    "sink",   "uniform",
                                   "induction", "copying",   "anti_copying"};
  return names[static_cast<std::size_t>(kind)];
}

std::vector<const RoleScore*> HeadRoles::held() const {
  std::vector<const RoleScore*> roles;
  if (main) roles.push_back(&scores[*main]);
  for (std::size_t i = 0; i < scores.size(); ++i) {
    if (scores[i].holds && main != i) roles.push_back(&scores[i]);
  }
  return roles;
}

double specialisation_of(const std::vector<double>& strengths) {
  double sum = 0;
  for (const double r : strengths) sum += r;
  if (sum <= 0) return 0;
  if (strengths.size() == 1) return 1;
  double entropy = 0;
  for (const double r : strengths) {
    if (r > 0) entropy -= r / sum * std::log(r / sum);
  }
  return 1 - entropy / std::log(static_cast<double>(strengths.size()));
}

std::int64_t RoleAnalysis::heads_with_role() const {
  return std::count_if(heads.begin(), heads.end(),
                       [](const HeadRoles& head) { return head.main.has_value(); });
}

double RoleAnalysis::mean_specialisation() const {
  double sum = 0;
  for (const HeadRoles& head : heads) sum += head.specialisation;
  return heads.empty() ? 0 : sum / static_cast<double>(heads.size());
}

RoleAnalysis analyse_roles(Model& model, const Task& task, std::uint64_t seed, const HeadAnalysis& analysis,
                           const UntrainedHeads& untrained, const RoleOptions& options) {
  const Looking looking(model);
  const Needs& needs = model.needs();
  const std::vector<HeadTarget> targets = task.head_targets();
  RoleAnalysis result;
  result.untrained_models = untrained.models;
  const std::vector<std::vector<PatternScore>> patterns = pattern_scores(model, task, seed, options.patterns);
  const std::vector<std::optional<WeightFigures>> weights = all_weight_figures(model);
  const PrefixPlan plan = prefix_plan(task, needs);
  result.no_prefix = plan.absent;
  std::vector<std::optional<PrefixMatching>> prefix(patterns.size());
  if (plan.absent.empty()) prefix = prefix_matching(model, task, plan, seed);
  if (!model.token_maps()) result.no_copying = "there is no single read-out over the tokens that are read";

  const std::vector<HeadId> ids = all_heads(model);
  check(analysis.heads.size() == ids.size(), "analyse_roles", "an analysis of {} heads for a model of {}",
        analysis.heads.size(), ids.size());
  for (std::size_t h = 0; h < ids.size(); ++h) {
    const HeadReport& report = analysis.heads[h];
    HeadRoles head;
    head.id = ids[h];
    head.weights = weights[h];
    HeadLayer& layer = layer_of(model, ids[h]);
    const std::int64_t keys = report.site == AttentionSite::self ? needs.context : needs.source_context;
    const std::optional<HeadWeights> own = layer.head_weights(ids[h].head);
    head.low_rank = (own ? own->q.dim(1) : layer.head_size()) < keys;
    for (const PatternScore& score : patterns[h])
      head.scores.push_back(of_pattern(score, report, analysis, targets));
    add_untrained_roles(head, report, untrained);
    if (prefix[h]) {
      head.prefix_matching = prefix[h]->score;
      const std::vector<double> null = means_of(prefix[h]->shuffled, options.patterns.null_draws, seed);
      head.scores.push_back(simple(Kind::induction, "induction", prefix[h]->score, null, mass_floor));
    }
    conclude(head);
    result.heads.push_back(std::move(head));
  }
  result.layers = layers_of(result.heads, analysis);
  if (!options.circuits) return result;
  result.compositions = compositions(model);
  result.in_context = in_context_score(model, task, seed);
  return result;
}

}  // namespace headlab
