#include "framework/heads/lifeline.h"

#include <cmath>
#include <set>

#include "framework/core/check.h"
#include "framework/heads/matching.h"

namespace headlab {

namespace {

const RoleScore* find(const HeadRoles& head, const std::string& name) {
  for (const RoleScore& role : head.scores) {
    if (role.name == name) return &role;
  }
  return nullptr;
}

/// The first index from which all are true; absent when the last is not.
std::optional<std::size_t> true_from(const std::vector<bool>& flags) {
  std::optional<std::size_t> first;
  for (std::size_t i = flags.size(); i > 0 && flags[i - 1]; --i) first = i - 1;
  return first;
}

HeadLife life_of_head(std::size_t h, const std::vector<RoleAnalysis>& moments,
                      const std::vector<std::vector<bool>>& itself) {
  HeadLife life;
  const HeadRoles& end = moments.back().heads[h];
  life.id = end.id;
  life.settled = true_from(itself[h]);
  if (!end.main) {
    life.strength.resize(moments.size());
    life.score.resize(moments.size());
    return life;
  }
  life.role = end.scores[*end.main].name;
  std::vector<bool> holds;
  std::vector<double> numbers;
  for (const RoleAnalysis& moment : moments) {
    const RoleScore* role = find(moment.heads[h], life.role);
    life.strength.push_back(role ? role->strength : 0);
    life.score.push_back(role ? std::optional(role->score) : std::nullopt);
    holds.push_back(role && role->holds);
    numbers.push_back(role ? role->score : 0);
  }
  life.born = true_from(holds);
  life.change = change_point(numbers);
  return life;
}

std::map<std::string, std::size_t> births_of(const std::vector<RoleAnalysis>& moments) {
  std::vector<std::set<std::string>> present;
  for (const RoleAnalysis& moment : moments) {
    present.emplace_back();
    for (const HeadRoles& head : moment.heads) {
      for (const RoleScore* role : head.held()) present.back().insert(role->name);
    }
  }
  std::map<std::string, std::size_t> births;
  for (const std::string& name : present.back()) {
    std::vector<bool> there;
    for (const std::set<std::string>& names : present) there.push_back(names.count(name) > 0);
    births[name] = *true_from(there);
  }
  return births;
}

}  // namespace

std::optional<ChangePoint> change_point(std::span<const double> values) {
  const std::size_t n = values.size();
  if (n < 4) return std::nullopt;
  double mean = 0;
  for (const double value : values) {
    if (!std::isfinite(value)) return std::nullopt;
    mean += value / static_cast<double>(n);
  }
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  if (squares <= 1e-24 * (1 + mean * mean)) return std::nullopt;
  // With sums S₁ and S₂ of the parts' deviations from the mean (S₂ = −S₁), two levels take away
  // S₁²/n₁ + S₂²/n₂.
  ChangePoint best;
  double largest = -1;
  double sum = 0;
  for (std::size_t k = 1; k < n; ++k) {
    sum += values[k - 1] - mean;
    const auto left = static_cast<double>(k);
    const auto right = static_cast<double>(n - k);
    const double taken = sum * sum * (1 / left + 1 / right);
    if (taken <= largest) continue;
    largest = taken;
    best = {k, mean + sum / left, mean - sum / right, taken / squares};
  }
  return best;
}

RunLife life_of(Model& model, const ModelBuilder& build, const Task& task, std::uint64_t seed,
                std::span<const Moment> moments, const UntrainedHeads& untrained) {
  check(!moments.empty(), "life-line", "there is no moment to look at");
  for (std::size_t i = 1; i < moments.size(); ++i) {
    check(moments[i].step > moments[i - 1].step, "life-line", "step {} comes behind step {}", moments[i].step,
          moments[i - 1].step);
  }
  const std::unique_ptr<Model> end = build(model.needs());
  end->load_state(moments.back().weights);
  RunLife life;
  life.seed = seed;
  std::vector<RoleAnalysis> roles;
  std::vector<std::vector<bool>> itself(all_heads(model).size());
  RoleOptions options;
  options.circuits = false;
  options.patterns.weights = std::int64_t{1} << 22;
  constexpr std::int64_t sequences = 128;
  for (const Moment& moment : moments) {
    model.load_state(moment.weights);
    life.steps.push_back(moment.step);
    roles.push_back(analyse_roles(model, task, seed, analyse_heads(model, task, seed, 64, sequences),
                                  untrained, options));
    const Looking looking(model);
    const Looking looking_at_end(*end);
    const HeadMatching matching = match_heads(model, *end, task, seed, 32);
    for (std::size_t h = 0; h < itself.size(); ++h)
      itself[h].push_back(matching.heads[h].partner == matching.heads[h].head);
  }
  for (std::size_t h = 0; h < itself.size(); ++h) life.heads.push_back(life_of_head(h, roles, itself));
  life.births = births_of(roles);
  return life;
}

}  // namespace headlab
