// Roles: what each head is, if it is anything. A score makes a role when it stands above what a head would
// score that does not do it (the null) and above a floor; "no role" is a normal answer.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "framework/heads/analyse.h"
#include "framework/heads/pattern_roles.h"
#include "framework/heads/untrained.h"
#include "framework/heads/weight_figures.h"

namespace headlab {

/// A role needs a rank above this share of its null, and a score from its floor on.
constexpr double null_share = 0.999;
constexpr double mass_floor = 0.4;
constexpr double uniform_floor = 0.9;  ///< normalised entropy
/// Heads of small random weights are all but even: an even head must be short of 1 by no more than this share
/// of what the most even of them are.
constexpr double uniform_share = 0.5;
constexpr double copying_floor = 0.4;  ///< of copying, or of its negative for anti-copying

/// What a score is compared with.
struct NullFigures {
  std::int64_t draws = 0;
  double median = 0;
  double threshold = 0;  ///< more than this is above null_share of the draws
};
/// Of scores in ascending order. Error: none.
NullFigures null_figures(const std::vector<double>& sorted);

struct RoleScore {
  enum class Kind {
    previous,
    self,
    next,
    offset,
    fixed_key,
    delimiter,
    duplicate,
    relation,  // PatternRole
    sink,
    uniform,
    induction,
    copying,
    anti_copying
  };
  Kind kind = Kind::previous;
  std::string name;  ///< "previous token", "offset -3", "key 5", "looks up succ", …
  double score = 0;
  NullFigures null;
  double floor = 0;
  /// Of a relation: the best fixed offset, which relation accuracy must beat by syntactic_margin.
  std::optional<double> relation_accuracy, baseline;
  bool holds = false;
  /// (score − null median) / (1 − null median) within 0 … 1; 0 where it does not hold.
  double strength = 0;
};
/// "offset", the word for a role of this kind in files.
std::string name_of(RoleScore::Kind kind);

struct HeadRoles {
  HeadId id;
  std::vector<RoleScore> scores;    ///< every role that could be tested
  std::optional<std::size_t> main;  ///< the strongest that holds; copying only where no other does
  double specialisation = 0;        ///< see specialisation_of()
  std::optional<WeightFigures> weights;
  std::optional<double> prefix_matching;
  /// Width of the queries and keys is below the context: no such head can give every pattern (Bhojanapalli
  /// et al. 2020). From the size of the head's context where no weights are shown.
  bool low_rank = false;

  std::vector<const RoleScore*> held() const;  ///< the main one first
};

/// 1 − H(r/Σr)/ln R over the strengths r of R roles: 1 for one role alone, 0 without a role. With R = 1 it is
/// 1 where the role holds.
double specialisation_of(const std::vector<double>& strengths);

struct LayerRoles {
  std::string layer;
  std::int64_t heads_with_role = 0;
  std::int64_t coverage = 0;  ///< different roles with at least one head (by name)
  double redundancy = 0;      ///< heads with a role / covered roles; 0 without any
};

struct RoleAnalysis {
  std::vector<HeadRoles> heads;  ///< as HeadAnalysis::heads
  std::vector<LayerRoles> layers;
  std::vector<Composition> compositions;  ///< of layers that show weights
  /// Mean loss of the last 10 % of the positions less that of positions 10 – 20 %: below 0, the model
  /// learns from what it has read. Absent where either has no answers.
  std::optional<double> in_context;
  std::string no_prefix, no_copying;  ///< why they are absent; else empty
  std::int64_t untrained_models = 0;

  std::int64_t heads_with_role() const;
  double mean_specialisation() const;
};

struct RoleOptions {
  PatternRoleOptions patterns = {};
  bool circuits = true;  ///< compositions and the in-context score, too
};

/// `analysis` is that of the same model, task and seed. `untrained`: of the same needs. Errors: see
/// pattern_scores() and analyse_heads(). The same bits for any number of threads.
RoleAnalysis analyse_roles(Model& model, const Task& task, std::uint64_t seed, const HeadAnalysis& analysis,
                           const UntrainedHeads& untrained, const RoleOptions& options = {});

/// See RoleAnalysis::in_context. In evaluation mode, without recording.
std::optional<double> in_context_score(Model& model, const Task& task, std::uint64_t seed,
                                       std::int64_t batch_size = 64);

}  // namespace headlab
