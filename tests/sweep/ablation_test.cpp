#include "framework/sweep/ablation.h"

#include <chrono>
#include <csignal>
#include <limits>
#include <thread>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "framework/core/parallel.h"
#include "framework/files/run_folder.h"
#include "framework/ops/operators.h"
#include "tests/support/child.h"
#include "tests/support/errors.h"
#include "tests/support/temporary_folder.h"
#include "tests/sweep/support.h"

namespace headlab {
namespace {

using namespace std::chrono_literals;

TEST(Ablation, TrainsEveryHeadCountWithEverySeed) {
  const TemporaryFolder folder;
  const AblationResult result = run_ablation(TinyTask(), tiny_catalogue(), tiny_options(folder.path()));
  ASSERT_EQ(result.levels.size(), 2u);
  EXPECT_EQ(result.done, 6);
  EXPECT_EQ(result.made, 6);
  EXPECT_EQ(result.reference, 1);
  EXPECT_FALSE(result.interrupted);
  const AblationLevel& four = result.levels[1];
  EXPECT_EQ(four.heads, 4);
  EXPECT_EQ(four.head_size, 3);
  EXPECT_EQ(four.parameters, result.levels[0].parameters);
  ASSERT_EQ(four.runs.size(), 3u);
  for (std::size_t seed = 0; seed < 3; ++seed) {
    const RunRecord& run = four.runs[seed].value();
    EXPECT_EQ(run.seed, seed);
    EXPECT_EQ(run.steps, 5);
    EXPECT_EQ(run.head_size, 3);
    EXPECT_EQ(run.parameters, four.parameters);
    EXPECT_EQ(run.curve.size(), 5u);
    EXPECT_GT(run.loss, 0);
    EXPECT_GT(run.seconds.value(), 0);
    EXPECT_EQ(run.figures.value().heads, 4);
    EXPECT_EQ(run.figures->targets, 1);
    EXPECT_TRUE(RunFolder::is_run(folder / run.name));
    EXPECT_TRUE(std::filesystem::exists(RunFolder::open(folder / run.name).last_checkpoint()));
    EXPECT_TRUE(RunFolder::open(folder / run.name).snapshots().empty());
  }
  EXPECT_EQ(four.accuracy.n, 3);
  EXPECT_EQ(four.difference.value().n, 3);
  EXPECT_FALSE(result.levels[0].difference);
  EXPECT_EQ(four.d_model, 12);
  EXPECT_TRUE(four.low_rank);  // 3 numbers in a head for 5 keys
  EXPECT_FALSE(result.levels[0].low_rank);
  EXPECT_GE(four.blended.mean.value(), 1);
  ASSERT_TRUE(result.picked);
  ASSERT_TRUE(result.knockout);
  EXPECT_EQ(std::ssize(result.knockout->heads), result.picked->record.heads);
  EXPECT_EQ(result.knockout->heads[0].readouts.size(), 2u);
  EXPECT_EQ(pick_run(folder.path()).path, folder / result.picked->record.name);
}

TEST(Ablation, GivesTheSameBitsForAnyNumberOfWorkers) {
  const TemporaryFolder folder;
  EXPECT_EQ(numbers(run_ablation(TinyTask(), tiny_catalogue(), tiny_options(folder.path(), 2))),
            undisturbed_ablation());
}

TEST(Ablation, KilledAndStartedAgainEqualsUndisturbed) {
  const TemporaryFolder folder;
  EXPECT_EQ(in_child([&] {
              std::atomic<int> written = 0;
              const TinyTask task([&] {
                // Fingerprints of three seeds take 3 · 40 examples; a run 15 + 37 + 37 at least.
                if (++written == 120 + 2 * 150) std::raise(SIGKILL);
              });
              run_ablation(task, tiny_catalogue(), tiny_options(folder.path()));
              return std::string();
            }),
            "signal 9");
  const AblationResult result = run_ablation(TinyTask(), tiny_catalogue(), tiny_options(folder.path()));
  EXPECT_GT(result.made, 0);
  EXPECT_LT(result.made, 6);
  EXPECT_EQ(numbers(result), undisturbed_ablation());
}

TEST(Ablation, StoppedInTheMiddleOfARunGoesOnFromThere) {
  const TemporaryFolder folder;
  AblationOptions options = tiny_options(folder.path());
  std::atomic<bool> stop = false;
  std::atomic<int> written = 0, looks = 0;
  options.stop = &stop;
  options.progress = [&](const SweepProgress&) { looks += stop ? 1 : 0; };
  const TinyTask task([&] {
    if (++written != 120 + 4) return;  // in the second step of the first run
    stop = true;
    while (looks < 2) std::this_thread::sleep_for(1ms);  // until the flag has been seen for certain
  });
  const AblationResult stopped = run_ablation(task, tiny_catalogue(), options);
  EXPECT_TRUE(stopped.interrupted);
  EXPECT_EQ(stopped.done, 0);
  EXPECT_FALSE(stopped.knockout);
  const AblationResult result = run_ablation(TinyTask(), tiny_catalogue(), tiny_options(folder.path()));
  EXPECT_EQ(result.made, 6);
  EXPECT_EQ(numbers(result), undisturbed_ablation());
}

TEST(Ablation, AChangedOptionStartsNewRunsAndKeepsTheOldOnes) {
  const TemporaryFolder folder;
  AblationOptions options = tiny_options(folder.path());
  const std::string before = numbers(run_ablation(TinyTask(), tiny_catalogue(), options));
  options.base.recipe.learning_rate = 0.02;
  const AblationResult other = run_ablation(TinyTask(), tiny_catalogue(), options);
  EXPECT_EQ(other.made, 6);
  EXPECT_NE(numbers(other), before);
  EXPECT_EQ(run_ablation(TinyTask({}, 2), tiny_catalogue(), options).made, 6);  // other data
  const AblationResult back = run_ablation(TinyTask(), tiny_catalogue(), tiny_options(folder.path()));
  EXPECT_EQ(back.made, 0);
  EXPECT_EQ(numbers(back), before);
}

TEST(Ablation, MoreSeedsAndLevelsAddToWhatIsThere) {
  const TemporaryFolder folder;
  run_ablation(TinyTask(), tiny_catalogue(), tiny_options(folder.path()));
  AblationOptions options = tiny_options(folder.path());
  options.heads = {2, 1, 4};
  options.seeds = 4;
  options.reference = 4;
  const AblationResult result = run_ablation(TinyTask(), tiny_catalogue(), options);
  EXPECT_EQ(result.made, 6);
  EXPECT_EQ(result.done, 12);
  EXPECT_EQ(result.levels[0].heads, 2);
  EXPECT_FALSE(result.levels[2].difference);
}

/// Its loss stops being a number in the third step of training.
class Poisoned final : public Model {
 public:
  explicit Poisoned(const Needs& needs) : Model(needs), inner_(build_model(needs)) {
    inner_->attach(this, "inner");
  }
  Tensor logits(const Batch& batch) override {
    const Tensor good = inner_->logits(batch);
    if (!training() || ++calls_ < 3) return good;
    return good * std::numeric_limits<double>::quiet_NaN();
  }

 private:
  std::unique_ptr<Model> inner_;
  int calls_ = 0;
};

TEST(Ablation, AFailedRunDropsItsPairAndIsKept) {
  const TemporaryFolder folder;
  std::atomic<int> built = 0;
  Catalogue catalogue;
  catalogue.build_with([&](const Needs& needs) -> std::unique_ptr<Model> {
    // Two models are built for validation; of the six of runs the fourth is h=4, seed 1.
    if (++built == 2 + 4) return std::make_unique<Poisoned>(needs);
    return build_model(needs);
  });
  const AblationResult result = run_ablation(TinyTask(), catalogue, tiny_options(folder.path()));
  EXPECT_EQ(result.done, 6);
  const RunRecord& failed = result.levels[1].runs[1].value();
  EXPECT_EQ(failed.failure.value(), "train: the loss of step 3 is nan; stopped before the update");
  EXPECT_EQ(result.levels[1].accuracy.n, 2);
  EXPECT_EQ(result.levels[1].difference.value().n, 2);
  EXPECT_EQ(result.levels[1].difference->dropped, 1);
  EXPECT_EQ(run_ablation(TinyTask(), tiny_catalogue(), tiny_options(folder.path())).made, 0);
}

TEST(Ablation, ShowsAPrototypeBesideTheTasksOwnSettingsAlone) {
  const TemporaryFolder folder;
  AblationOptions options = tiny_options(folder.path());
  options.seeds = 1;
  options.base.recipe = TinyTask().recipe();
  const AblationResult own = run_ablation(TinyTask(), tiny_catalogue(), options);
  EXPECT_EQ(own.levels[0].prototype, 0.5);
  EXPECT_FALSE(own.levels[1].prototype);  // nobody measured it
  options.base.recipe.steps = 4;
  EXPECT_FALSE(run_ablation(TinyTask(), tiny_catalogue(), options).levels[0].prototype);
}

TEST(Ablation, HoldsTheSizeOfAHead) {
  const TemporaryFolder folder;
  AblationOptions options = tiny_options(folder.path());
  options.hold = Hold::d_head;
  options.base.needs.head_size = 7;
  options.heads = {1, 5};
  options.seeds = 1;
  const AblationResult result = run_ablation(TinyTask(), tiny_catalogue(), options);
  EXPECT_EQ(result.levels[1].head_size, 7);
  EXPECT_EQ(result.levels[1].runs[0]->head_size, 7);
  EXPECT_GT(result.levels[1].parameters, result.levels[0].parameters);
}

std::string refusal(const std::function<void(AblationOptions&)>& change) {
  const TemporaryFolder folder;
  AblationOptions options = tiny_options(folder / "sweep");
  change(options);
  const std::string error = error_of([&] { run_ablation(TinyTask(), tiny_catalogue(), options); });
  EXPECT_FALSE(std::filesystem::exists(folder / "sweep")) << error;
  return error;
}

TEST(Ablation, RefusesContradictionsBeforeTheFirstRun) {
  EXPECT_EQ(refusal([](auto& o) { o.heads = {1, 5}; }), "ablation: d_model 12 is not a multiple of 5 heads");
  EXPECT_EQ(refusal([](auto& o) { o.heads = {1, 0}; }), "ablation: 0 heads; at least 1 is needed");
  EXPECT_EQ(refusal([](auto& o) { o.heads = {1, 4, 1}; }), "ablation: 1 heads are asked for twice");
  EXPECT_EQ(refusal([](auto& o) { o.heads = {}; }), "ablation: there are no head counts to compare");
  EXPECT_EQ(refusal([](auto& o) { o.seeds = 0; }), "ablation: 0 seeds; at least 1 is needed");
  EXPECT_EQ(refusal([](auto& o) { o.reference = 2; }),
            "ablation: the reference, 2 heads, is not one of the levels 1, 4");
}

TEST(Ablation, RefusesAModelThatCannotBeBuiltAtTheLastLevel) {
  const std::string error = refusal([](AblationOptions& options) {
    options.base.needs.positions = Needs::Positions::rotary;
    options.heads = {1, 12};  // a head of one number cannot be turned
  });
  EXPECT_NE(error.find("rotary"), std::string::npos) << error;
}

TEST(Ablation, ComparesWithTheFewestHeadsWhereOneIsNotThere) {
  const TemporaryFolder folder;
  AblationOptions options = tiny_options(folder.path());
  options.heads = {4, 2};
  options.seeds = 1;
  EXPECT_EQ(run_ablation(TinyTask(), tiny_catalogue(), options).reference, 2);
}

}  // namespace
}  // namespace headlab
