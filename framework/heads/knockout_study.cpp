#include "framework/heads/knockout_study.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "framework/core/check.h"
#include "framework/core/random.h"

namespace headlab {

namespace {

// Of each layer: how many heads are wanted, and from which they may come.
struct Choice {
  std::int64_t layer = 0;
  std::size_t wanted = 0;
  std::vector<std::int64_t> from;
};

std::vector<Choice> choices_like(Model& model, const HeadList& set) {
  const HeadMask mask = mask_of_heads(model, set);
  std::vector<Choice> choices;
  for (std::size_t l = 0; l < mask.size(); ++l) {
    Choice choice{static_cast<std::int64_t>(l), 0, {}};
    std::vector<std::int64_t> all;
    for (std::size_t h = 0; h < mask[l].size(); ++h) {
      all.push_back(static_cast<std::int64_t>(h));
      if (mask[l][h]) {
        ++choice.wanted;
      } else {
        choice.from.push_back(all.back());
      }
    }
    if (choice.from.size() < choice.wanted) choice.from = all;
    if (choice.wanted > 0) choices.push_back(choice);
  }
  return choices;
}

double combinations(const std::vector<Choice>& choices) {
  double product = 1;
  for (const Choice& choice : choices) {
    for (std::size_t i = 0; i < choice.wanted; ++i) {
      product *= static_cast<double>(choice.from.size() - i) / static_cast<double>(i + 1);
    }
  }
  return product;
}

// All ways to choose from layer `at` on, in order.
void enumerate(const std::vector<Choice>& choices, std::size_t at, std::size_t from, std::size_t taken,
               HeadList& now, std::set<HeadMask>& found, Model& model) {
  if (at == choices.size()) {
    found.insert(mask_of_heads(model, now));
    return;
  }
  const Choice& choice = choices[at];
  if (taken == choice.wanted) return enumerate(choices, at + 1, 0, 0, now, found, model);
  for (std::size_t i = from; i + (choice.wanted - taken) <= choice.from.size(); ++i) {
    now.push_back({choice.layer, choice.from[i]});
    enumerate(choices, at, i + 1, taken + 1, now, found, model);
    now.pop_back();
  }
}

HeadList list_of(const HeadMask& mask) {
  HeadList list;
  for (std::size_t l = 0; l < mask.size(); ++l) {
    for (std::size_t h = 0; h < mask[l].size(); ++h) {
      if (mask[l][h]) list.push_back({static_cast<std::int64_t>(l), static_cast<std::int64_t>(h)});
    }
  }
  return list;
}

KnockoutLoss mean_of(const std::vector<KnockoutLoss>& losses) {
  KnockoutLoss mean;
  const auto n = static_cast<double>(losses.size());
  for (const KnockoutLoss& loss : losses) {
    mean.accuracy += loss.accuracy / n;
    mean.loss += loss.loss / n;
    mean.readouts.resize(loss.readouts.size());
    for (std::size_t r = 0; r < loss.readouts.size(); ++r) mean.readouts[r] += loss.readouts[r] / n;
    mean.kinds.resize(loss.kinds.size());
    for (std::size_t k = 0; k < loss.kinds.size(); ++k) mean.kinds[k] += loss.kinds[k] / n;
  }
  return mean;
}

}  // namespace

std::vector<HeadList> random_sets_like(Model& model, const HeadList& set, std::size_t count,
                                       std::uint64_t seed) {
  const std::vector<Choice> choices = choices_like(model, set);
  const HeadMask own = mask_of_heads(model, set);
  std::set<HeadMask> found;
  if (combinations(choices) <= static_cast<double>(count + 1)) {
    HeadList now;
    enumerate(choices, 0, 0, 0, now, found, model);
    found.erase(own);
  } else {
    Random random(seed, Stream::statistics, hash("random sets"));
    while (found.size() < count) {
      HeadList drawn;
      for (const Choice& choice : choices) {
        const auto order = random.permutation(std::ssize(choice.from));
        for (std::size_t i = 0; i < choice.wanted; ++i) {
          drawn.push_back({choice.layer, choice.from[static_cast<std::size_t>(order[i])]});
        }
      }
      HeadMask mask = mask_of_heads(model, drawn);
      if (mask != own) found.insert(std::move(mask));
    }
  }
  std::vector<HeadList> sets;
  for (const HeadMask& mask : found) {
    if (!list_of(mask).empty()) sets.push_back(list_of(mask));
  }
  return sets;
}

std::vector<SetLoss> set_losses(Model& model, const Task& task, std::uint64_t seed,
                                const std::vector<HeadSet>& sets, std::size_t random_sets,
                                const KnockoutOptions& options) {
  std::vector<HeadList> off{{}};
  std::vector<std::size_t> randoms;
  for (const HeadSet& set : sets) {
    off.push_back(set.heads);
    const std::vector<HeadList> like = random_sets_like(model, set.heads, random_sets, seed);
    off.insert(off.end(), like.begin(), like.end());
    randoms.push_back(like.size());
  }
  const KnockoutRuns runs = answers_without_each(model, task, seed, off, options);
  std::vector<SetLoss> losses;
  std::vector<KnockoutLoss> own;
  std::size_t at = 1;
  for (std::size_t s = 0; s < sets.size(); ++s) {
    SetLoss loss{.set = sets[s]};
    own.push_back(loss_between(runs.answers[0], runs.answers[at++], task.accuracy()));
    std::size_t as_bad = 0;
    for (std::size_t r = 0; r < randoms[s]; ++r) {
      loss.random.push_back(loss_between(runs.answers[0], runs.answers[at++], task.accuracy()));
      as_bad += loss.random.back().loss >= own.back().loss ? 1 : 0;
    }
    if (!loss.random.empty()) {
      loss.random_mean = mean_of(loss.random);
      loss.p_random = static_cast<double>(1 + as_bad) / static_cast<double>(1 + loss.random.size());
    }
    losses.push_back(std::move(loss));
  }
  correct_for_number(own, runs.answers[0]);
  for (std::size_t s = 0; s < sets.size(); ++s) losses[s].loss = own[s];
  return losses;
}

std::vector<Answers> cumulative(Model& model, const Task& task, std::uint64_t seed, const HeadList& order,
                                const KnockoutOptions& options) {
  std::vector<HeadList> sets;
  for (std::size_t i = 0; i <= order.size(); ++i) {
    sets.emplace_back(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(i));
  }
  return answers_without_each(model, task, seed, sets, options).answers;
}

PruneCurve prune_curve(Model& model, const Task& task, std::uint64_t seed, const HeadList& order,
                       const KnockoutOptions& options) {
  PruneCurve curve;
  curve.heads = std::ssize(order);
  std::vector<HeadList> sets;
  for (std::int64_t step = 0; step <= 10; ++step) {
    const std::int64_t off = std::llround(static_cast<double>(step * curve.heads) / 10);
    if (!curve.points.empty() && curve.points.back().off == off) continue;
    curve.points.push_back({off});
    sets.emplace_back(order.begin(), order.begin() + off);
  }
  const KnockoutRuns runs = answers_without_each(model, task, seed, sets, options);
  const double intact = runs.answers[0].accuracy(task.accuracy());
  bool keeps = true;
  for (std::size_t i = 0; i < sets.size(); ++i) {
    PruneCurve::Point& point = curve.points[i];
    const double accuracy = runs.answers[i].accuracy(task.accuracy());
    point.score = intact > 0 ? accuracy / intact : 1;
    point.loss = runs.answers[i].loss;
    keeps = keeps && point.score >= PruneCurve::kept_score;
    if (keeps) curve.fewest = curve.heads - point.off;
    if (i == 0) continue;
    const PruneCurve::Point& before = curve.points[i - 1];
    curve.area += (before.score + point.score) / 2 * static_cast<double>(point.off - before.off) /
                  static_cast<double>(std::max<std::int64_t>(curve.heads, 1));
  }
  return curve;
}

std::vector<KeptHead> keep_one(Model& model, const Task& task, std::uint64_t seed,
                               const KnockoutOptions& options) {
  std::vector<HeadList> sets;
  std::vector<KeptHead> candidates;
  for (const HeadId kept : all_heads(model)) {
    const std::int64_t heads = layer_of(model, kept).heads();
    if (heads < 2) continue;
    HeadList others;
    for (std::int64_t h = 0; h < heads; ++h) {
      if (h != kept.head) others.push_back({kept.layer, h});
    }
    sets.push_back(std::move(others));
    candidates.push_back({kept, heads, {}});
  }
  KnockoutOptions choosing = options;
  choosing.part = HeldOut::choose;
  const KnockoutRuns runs = answers_without_each(model, task, seed, sets, choosing);
  std::vector<KeptHead> best;
  std::vector<HeadList> off{{}};
  std::vector<double> loss;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    const bool same_layer = !best.empty() && best.back().head.layer == candidates[i].head.layer;
    if (same_layer && loss.back() <= runs.answers[i].loss) continue;
    if (same_layer) {
      best.pop_back();
      off.pop_back();
      loss.pop_back();
    }
    best.push_back(candidates[i]);
    off.push_back(sets[i]);
    loss.push_back(runs.answers[i].loss);
  }
  const KnockoutRuns scored = answers_without_each(model, task, seed, off, options);
  std::vector<KnockoutLoss> losses;
  for (std::size_t i = 0; i < best.size(); ++i) {
    losses.push_back(loss_between(scored.answers[0], scored.answers[i + 1], task.accuracy()));
    losses.back().head = best[i].head;
  }
  correct_for_number(losses, scored.answers[0]);
  for (std::size_t i = 0; i < best.size(); ++i) best[i].loss = losses[i];
  return best;
}

}  // namespace headlab
