#include "framework/sweep/measure.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "framework/core/check.h"
#include "framework/files/line_log.h"
#include "framework/files/run_folder.h"
#include "framework/heads/analyse.h"
#include "framework/heads/knockout.h"

namespace headlab {

struct Measuring::Seen {
  Model& model;
  const Task& task;
  std::uint64_t seed;
  double accuracy;
  std::filesystem::path run;
  std::optional<HeadAnalysis> analysis_ = {};
  std::optional<KnockoutMatrix> knockout_ = {};
  std::optional<Answers> intact_ = {};

  const HeadAnalysis& analysis() {
    if (!analysis_) analysis_ = analyse_heads(model, task, seed);
    return *analysis_;
  }
  const KnockoutMatrix& knockout() {
    if (!knockout_) knockout_ = knockout_matrix(model, task, seed);
    return *knockout_;
  }
  const Answers& intact() {
    if (!intact_) intact_ = knockout_ ? knockout_->intact : answers(model, task, seed);
    return *intact_;
  }
  const TargetReport& target(const Claim& claim) {
    check(claim.target < analysis().targets.size(), "claim", "target {} of {}: {} has {}", claim.target,
          claim.says, task.name(), analysis().targets.size());
    return analysis().targets[claim.target];
  }
  double mass(const HeadReport& head, std::size_t target) const { return head.targets.at(target).mass; }

  std::optional<double> value(const Claim& claim);
  double best_mass(const Claim& claim);
  double mass_above_other(const Claim& claim);
  double off_job_lost();
  std::optional<double> half_step() const;
  double accuracy_without(const Claim& claim, const std::vector<HeadId>& heads);
  double without_set(const Claim& claim);
  double without_site(const Claim& claim);
  std::optional<double> worst_head(const Claim& claim);
};

double Measuring::Seen::best_mass(const Claim& claim) {
  target(claim);
  double best = 0;
  for (const HeadReport& head : analysis().heads) {
    best = std::max(best, mass(head, claim.target) + (claim.other ? mass(head, *claim.other) : 0));
  }
  return best;
}

double Measuring::Seen::mass_above_other(const Claim& claim) {
  const TargetReport& report = target(claim);
  if (!report.head || !claim.other) return 0;
  const HeadReport& head = analysis().heads[*report.head];
  return mass(head, claim.target) - mass(head, *claim.other);
}

double Measuring::Seen::off_job_lost() {
  double most = 0;
  for (const TargetReport& job : analysis().targets) {
    if (!job.head) continue;
    const std::vector<double>& lost = knockout().heads[*job.head].readouts;
    for (std::size_t r = 0; r < lost.size(); ++r) {
      if (static_cast<int>(r) != job.target.readout) most = std::max(most, lost[r]);
    }
  }
  return most;
}

std::optional<double> Measuring::Seen::half_step() const {
  for (const std::string& line : read_lines(RunFolder::open(run).metrics())) {
    const nlohmann::json json = nlohmann::json::parse(line, nullptr, false);
    if (!json.is_object() || !json.contains("accuracy") || !json["accuracy"].is_number()) continue;
    if (json["accuracy"].get<double>() >= 0.5) return json.value("step", 0.0);
  }
  return std::nullopt;
}

double Measuring::Seen::accuracy_without(const Claim& claim, const std::vector<HeadId>& heads) {
  const Answers left = heads.empty() ? intact() : answers_without(model, task, seed, heads);
  if (!claim.answer) return left.accuracy(task.accuracy());
  check(*claim.answer < left.readouts.size(), "claim", "answer {} of {}: {} has {}", *claim.answer,
        claim.says, task.name(), left.readouts.size());
  return left.readouts[*claim.answer];
}

double Measuring::Seen::without_set(const Claim& claim) {
  target(claim);
  std::vector<HeadId> heads;
  for (const HeadReport& head : analysis().heads) {
    if (mass(head, claim.target) > claim.threshold) heads.push_back(head.id);
  }
  return accuracy_without(claim, heads);
}

double Measuring::Seen::without_site(const Claim& claim) {
  const AttentionSite site = target(claim).target.site;
  std::vector<HeadId> heads;
  for (const HeadReport& head : analysis().heads) {
    if (head.site == site) heads.push_back(head.id);
  }
  return accuracy_without(claim, {}) - accuracy_without(claim, heads);
}

std::optional<double> Measuring::Seen::worst_head(const Claim& claim) {
  const AttentionSite site = target(claim).target.site;
  std::optional<double> most;
  for (std::size_t i = 0; i < analysis().heads.size(); ++i) {
    const KnockoutLoss& loss = knockout().heads[i];
    const double lost = claim.answer ? loss.readouts.at(*claim.answer) : loss.accuracy;
    if (analysis().heads[i].site == site) most = std::max(most.value_or(lost), lost);
  }
  return most;
}

std::optional<double> Measuring::Seen::value(const Claim& claim) {
  const auto count = [](std::int64_t n) { return static_cast<double>(n); };
  switch (claim.measure) {
    case Measure::accuracy:
      return accuracy;
    case Measure::position:
      return intact().position;
    case Measure::cover:
      return count(analysis().cover);
    case Measure::distinct_offsets:
      return count(analysis().distinct_offsets);
    case Measure::distinct_owners:
      return count(analysis().distinct_owners);
    case Measure::relation:
      return target(claim).best_relation;
    case Measure::relation_above_offset:
      return target(claim).best_relation - target(claim).baseline;
    case Measure::mean_relation:
      return target(claim).mean_relation;
    case Measure::mass:
      return best_mass(claim);
    case Measure::mass_above_other:
      return mass_above_other(claim);
    case Measure::half_step:
      return half_step();
    case Measure::without_set:
      return without_set(claim);
    case Measure::accuracy_lost:
      return without_site(claim);
    case Measure::off_job_lost:
      return off_job_lost();
    case Measure::worst_head:
      break;
  }
  return worst_head(claim);
}

Measuring::Measuring(Model& model, const Task& task, std::uint64_t seed, double accuracy,
                     std::filesystem::path run)
    : seen_(new Seen{model, task, seed, accuracy, std::move(run)}) {}
Measuring::~Measuring() = default;

std::optional<double> Measuring::operator()(const Claim& claim) { return seen_->value(claim); }

}  // namespace headlab
