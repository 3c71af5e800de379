// The bundled ladders over five seeds, against the ranges in which measured prototypes put them. These are
// whole trainings: the default `headlab ablate` is the first of them.
#include <filesystem>
#include <map>
#include <vector>

#include <gtest/gtest.h>

#include "framework/core/parallel.h"
#include "framework/data/copy.h"
#include "framework/data/induction.h"
#include "framework/data/offsets.h"
#include "framework/data/prev.h"
#include "framework/data/reverse.h"
#include "framework/data/roles.h"
#include "framework/heads/analyse.h"
#include "framework/heads/knockout.h"
#include "framework/sweep/ablation.h"
#include "framework/train/run.h"
#include "models/build.h"
#include "tests/support/temporary_folder.h"

namespace headlab {
namespace {

class Ladder : public testing::Test {
 protected:
  AblationResult ablate(std::shared_ptr<const Task> task, std::vector<std::int64_t> heads,
                        std::optional<Needs> needs = {}) {
    task_ = task;
    catalogue_.build_with(build_model).add(task);
    AblationOptions options;
    options.base = {.task = task->name(), .needs = task->needs(), .recipe = task->recipe()};
    if (needs) options.base.needs = *needs;
    options.heads = std::move(heads);
    options.seeds = 5;
    options.folder = folder_ / "sweep";
    options.workers = threads();
    return run_ablation(*task, catalogue_, options);
  }
  LoadedRun load(const RunRecord& record) const {
    return load_run(folder_ / "sweep" / record.name, catalogue_);
  }

  TemporaryFolder folder_;
  Catalogue catalogue_;
  std::shared_ptr<const Task> task_;
};

const AblationLevel& at(const AblationResult& result, std::int64_t heads) {
  for (const AblationLevel& level : result.levels) {
    if (level.heads == heads) return level;
  }
  fail("ladder", "no level of {} heads", heads);
}
double accuracy(const AblationResult& result, std::int64_t heads) {
  return at(result, heads).accuracy.mean.value_or(-1);
}

template <class F>
double mean_over(const AblationLevel& level, const F& value) {
  double sum = 0;
  for (const auto& run : level.runs) sum += value(*run);
  return sum / static_cast<double>(level.runs.size());
}
void expect_between(double value, double low, double high, const char* what) {
  EXPECT_GE(value, low) << what;
  EXPECT_LE(value, high) << what;
}

TEST_F(Ladder, OffsetsNeedOneHeadPerLookUp) {
  const AblationResult r = ablate(std::make_shared<OffsetsTask>(), {1, 2, 4, 8, 16});
  expect_between(accuracy(r, 1), .15, .26, "h=1");
  expect_between(accuracy(r, 2), .37, .50, "h=2");
  expect_between(accuracy(r, 4), .68, .92, "h=4");
  EXPECT_GE(accuracy(r, 8), .97);
  EXPECT_GE(accuracy(r, 16), .97);
  EXPECT_LE(at(r, 1).cover.mean.value(), 1);
  EXPECT_LE(at(r, 2).cover.mean.value(), 1);
  EXPECT_GE(at(r, 8).cover.mean.value(), 5);
  EXPECT_GE(at(r, 16).cover.mean.value(), 7);
  EXPECT_GE(
      mean_over(at(r, 8),
                [](const RunRecord& run) { return static_cast<double>(run.figures->distinct_offsets); }),
      7);
  const auto all_right = [&](const RunRecord& run) {
    return answers(*load(run).model, *task_, run.seed).position;
  };
  EXPECT_LT(mean_over(at(r, 1), all_right), .02);
  EXPECT_LT(mean_over(at(r, 4), all_right), .60);
  EXPECT_GE(mean_over(at(r, 8), all_right), .90);
}

TEST_F(Ladder, PrevDoesNotCareForTheHeadCount) {
  const AblationResult r = ablate(std::make_shared<PrevTask>(), {1, 4, 8, 16});
  for (const std::int64_t heads : {1, 4, 8, 16}) EXPECT_GE(accuracy(r, heads), .99) << heads;
  const LoadedRun one = load(*at(r, 1).runs[0]);
  EXPECT_GE(knockout_matrix(*one.model, *task_, 0).heads[0].accuracy, .9);
}

TEST_F(Ladder, RolesGetOneHeadEach) {
  const AblationResult r = ablate(std::make_shared<RolesTask>(), {1, 2, 4, 8, 16});
  expect_between(accuracy(r, 1), .45, .85, "h=1");
  expect_between(accuracy(r, 2), .78, .92, "h=2");
  for (const std::int64_t heads : {4, 8, 16}) EXPECT_GE(accuracy(r, heads), .97) << heads;
  int seeds = 0;
  for (const auto& record : at(r, 4).runs) {
    const LoadedRun run = load(*record);
    const HeadAnalysis heads = analyse_heads(*run.model, *task_, record->seed);
    if (heads.distinct_owners != 4) continue;
    const KnockoutMatrix matrix = knockout_matrix(*run.model, *task_, record->seed);
    bool apart = true;
    for (std::size_t target = 0; target < heads.targets.size(); ++target) {
      const KnockoutLoss& loss = matrix.heads[*heads.targets[target].head];
      for (std::size_t readout = 0; readout < loss.readouts.size(); ++readout) {
        if (static_cast<int>(readout) != heads.targets[target].target.readout)
          apart = apart && loss.readouts[readout] < .05;
      }
    }
    if (apart) ++seeds;
  }
  EXPECT_GE(seeds, 4) << "seeds in which four heads do four jobs and nothing else";
}

TEST_F(Ladder, SlowInductionIsATwoLayerCircuit) {
  const AblationResult r = ablate(std::make_shared<InductionTask>(), {1, 4, 16});
  expect_between(accuracy(r, 1), .65, 1, "h=1");
  EXPECT_GE(accuracy(r, 4), .98);
  EXPECT_LE(accuracy(r, 16), .40);
  // Without the heads that look at the token before, where that is used, the circuit is cut.
  double left = 0;
  double best_prefix = 0;
  for (const auto& record : at(r, 4).runs) {
    const LoadedRun run = load(*record);
    const HeadAnalysis heads = analyse_heads(*run.model, *task_, record->seed);
    std::vector<HeadId> previous;
    double prefix = 0;
    for (const HeadReport& head : heads.heads) {
      if (head.id.layer == 0 && head.targets[InductionTask::previous].mass > .5) previous.push_back(head.id);
      if (head.id.layer == 1) prefix = std::max(prefix, head.targets[InductionTask::successor].mass);
    }
    left += answers_without(*run.model, *task_, record->seed, previous).pooled / 5;
    best_prefix += prefix / 5;
  }
  EXPECT_LE(left, .25);
  EXPECT_GE(best_prefix, .75);
}

TEST_F(Ladder, SlowOneLayerCannotDoInduction) {
  const auto task = std::make_shared<InductionTask>();
  Needs needs = task->needs();
  needs.layers = 1;
  EXPECT_LE(accuracy(ablate(task, {1, 4}, needs), 4), .15);
}

// Accuracy hardly changes with the head count; the same job is done by more and blurrier heads.
void check_transcription(const AblationResult& r, double few, double many) {
  for (const std::int64_t heads : {1, 4, 8}) EXPECT_GE(accuracy(r, heads), few) << heads;
  EXPECT_GE(accuracy(r, 16), many);
}

TEST_F(Ladder, SlowCopyIsFlat) {
  check_transcription(ablate(std::make_shared<CopyTask>(), {1, 4, 8, 16}), .97, .90);
}
TEST_F(Ladder, SlowReverseIsFlat) {
  check_transcription(ablate(std::make_shared<ReverseTask>(), {1, 4, 8, 16}), .97, .80);
}

}  // namespace
}  // namespace headlab
