// Many knock-outs at once: what they share is computed once.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "framework/heads/answers.h"
#include "framework/heads/intervention.h"

namespace headlab {

using HeadList = std::vector<HeadId>;

struct KnockoutOptions {
  HeldOut part = HeldOut::score;
  std::int64_t batch_size = 64;
  How how = How::zero;
  Path path = Path::all;
  std::int64_t sequences = 0;  ///< only the first so many of the part; 0: all
  /// Whether stages that several knock-outs share are run once, where the model is Staged. The bits are the
  /// same.
  bool reuse = true;
};

struct KnockoutRuns {
  std::vector<Answers> answers;  ///< one for each set of heads that is off
  bool staged = false;           ///< whether stages were shared
  /// Stages run, counted by copies of the set; with whole passes it would be `whole`.
  std::int64_t run = 0, whole = 0;
};

/// The answers without each of several sets of heads; an empty set is the intact model. Sets that agree below
/// a layer share the stages below it (all of the intact ones among them), and what is left runs as copies of
/// the batch side by side with a gate per example. Rows of a batch do not depend on one another, so the bits
/// are those of one pass a set. Of L layers a single head leaves those above it to run, (L − 1)/2 on average,
/// and of the last one the positions that are read out; sets of many heads, as for Shapley values, share far
/// more. A model that is not Staged, and paths through q, k or v, take whole passes.
/// Errors: see Intervention; a batch size below 1.
KnockoutRuns answers_without_each(Model& model, const Task& task, std::uint64_t seed,
                                  std::span<const HeadList> sets, const KnockoutOptions& options = {});

}  // namespace headlab
