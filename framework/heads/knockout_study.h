// Questions to a model that take many knock-outs: sets beside random sets, which order of removal hurts, one
// head alone.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "framework/heads/knockout.h"

namespace headlab {

/// Heads that put more than this share of their weight on a target make up the target's set.
constexpr double set_mass = 0.3;

struct HeadSet {
  std::string name;
  HeadList heads;
};

/// Other sets with as many heads in each layer as this one: all there are if these are no more than `count`,
/// else so many different ones at random. Heads of the set itself are left out in layers that have enough
/// others. Empty where its layers have no other heads.
std::vector<HeadList> random_sets_like(Model& model, const HeadList& set, std::size_t count,
                                       std::uint64_t seed);

/// One set, all of it off at once, beside random sets: a set that hurts one answer while random ones do not,
/// and another that hurts another, is a double dissociation.
struct SetLoss {
  HeadSet set;
  KnockoutLoss loss = {};
  std::vector<KnockoutLoss> random = {};
  /// Means over the random sets; of accuracy, loss and each read-out.
  KnockoutLoss random_mean = {};
  /// (1 + random sets whose loss is at least this one's) / (1 + random sets); absent without any.
  std::optional<double> p_random = {};
};
std::vector<SetLoss> set_losses(Model& model, const Task& task, std::uint64_t seed,
                                const std::vector<HeadSet>& sets, std::size_t random_sets,
                                const KnockoutOptions& options = {});

/// Heads switched off one after another; entry i is without the first i of them, entry 0 intact.
std::vector<Answers> cumulative(Model& model, const Task& task, std::uint64_t seed, const HeadList& order,
                                const KnockoutOptions& options = {});

/// Score against the share of heads that are off, in steps of 10 %, in the given order.
struct PruneCurve {
  struct Point {
    std::int64_t off = 0;
    double score = 0;  ///< accuracy as the task counts it, as a share of the intact one
    double loss = 0;
  };
  std::vector<Point> points;
  double area = 0;  ///< under the curve by trapezia, 1 if nothing were ever lost
  /// The smallest number of heads left that keeps this share of the score with every larger number too.
  static constexpr double kept_score = 0.95;
  std::int64_t fewest = 0;
  std::int64_t heads = 0;
};
PruneCurve prune_curve(Model& model, const Task& task, std::uint64_t seed, const HeadList& order,
                       const KnockoutOptions& options = {});

/// One layer with a single head left (Michel et al. 2019, section 3.3): the head is chosen on the half of the
/// held-out set where choices are made, the loss is of the other half.
struct KeptHead {
  HeadId head;
  std::int64_t heads = 0;  ///< of its layer
  KnockoutLoss loss;       ///< without all others of the layer
};
std::vector<KeptHead> keep_one(Model& model, const Task& task, std::uint64_t seed,
                               const KnockoutOptions& options = {});

}  // namespace headlab
