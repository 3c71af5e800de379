// Trainings that meet numbers that are not finite, and disks that do not take what is written.
#include <limits>

#include <nlohmann/json.hpp>
#include <sys/resource.h>

#include "framework/core/parallel.h"
#include "framework/data/roles.h"
#include "framework/files/atomic_file.h"
#include "framework/files/line_log.h"
#include "framework/files/run_folder.h"
#include "framework/train/checkpoint.h"
#include "tests/support/child.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/training.h"

namespace headlab {
namespace {

/// Puts NaN into a weight before step `step` (counted from 1), or after it.
class Poison : public Observer {
 public:
  explicit Poison(std::int64_t step, bool after = false) : step_(step), after_(after) {}
  void before_step(Model& model, std::int64_t done) override {
    if (!after_ && done + 1 == step_) poison(model);
  }
  void on_step(Model& model, const StepReport& report) override {
    if (after_ && report.step == step_) poison(model);
  }

 private:
  static void poison(Model& model) {
    Array& value = model.parameters().front().parameter->tensor().change();
    value.fill(std::numeric_limits<double>::quiet_NaN());
  }
  std::int64_t step_;
  bool after_;
};

TEST(NonFiniteLoss, StopsTrainingAndLeavesTheLastCheckpoint) {
  const TemporaryFolder folder;
  const TinyTask task;
  Poison poison(7);
  TrainOptions options;
  options.run = folder / "run";
  options.checkpoint_every = 5;
  options.observers = {&poison};
  EXPECT_EQ(error_of([&] { train_new(task, config_of(task, 20), options); }),
            "train: the loss of step 7 is nan; stopped before the update");
  const RunFolder run = RunFolder::open(folder / "run");
  EXPECT_EQ(load_checkpoint(run.last_checkpoint()).step, 5);
  const auto lines = read_lines(run.metrics());
  EXPECT_EQ(lines.size(), 6U);
  for (const std::string& line : lines) EXPECT_TRUE(nlohmann::json::parse(line).is_object());

  options.observers.clear();
  options.resume = true;
  EXPECT_EQ(train_new(task, config_of(task, 20), options).result.losses, [&] {
    auto losses = train_new(task, config_of(task, 20)).result.losses;
    losses.erase(losses.begin(), losses.begin() + 5);
    return losses;
  }());
}

TEST(NonFiniteWeights, AreNeverSaved) {
  const TemporaryFolder folder;
  const TinyTask task;
  Poison poison(10, true);
  TrainOptions options;
  options.run = folder / "run";
  options.checkpoint_every = 5;
  options.snapshots = false;
  options.observers = {&poison};
  const RunFolder run = RunFolder::create(folder / "run");
  EXPECT_EQ(error_of([&] { train_new(task, config_of(task, 20), options); }),
            run.last_checkpoint().string() + ": not saved: 'embed.token.weight' holds nan");
  EXPECT_EQ(load_checkpoint(run.last_checkpoint()).step, 5);
}

/// Fails the test when training begins.
class Never : public Observer {
 public:
  void on_start(Model&, const Task&, std::int64_t, std::int64_t) override { ADD_FAILURE() << "it began"; }
};

TEST(RunFolderOfATraining, IsRejectedBeforeTheFirstStep) {
  const TemporaryFolder folder;
  const TinyTask task;
  Never never;
  TrainOptions options;
  options.observers = {&never};
  const auto error_at = [&](const std::filesystem::path& path) {
    options.run = path;
    return error_of([&] { train_new(task, config_of(task, 2), options); });
  };
  write_file(folder / "file", "");
  EXPECT_NE(error_at(folder / "file").find((folder / "file").string() + ": cannot create the folder"),
            std::string::npos);
  EXPECT_NE(error_at("/proc/headlab").find("/proc/headlab: cannot create the folder: "), std::string::npos);
  std::filesystem::create_directory(folder / "other");
  write_file(folder.path() / "other" / "config.json", "{}");
  EXPECT_EQ(error_at(folder / "other"),
            (folder.path() / "other" / "config.json").string() + ": task is missing");
  options.resume = true;
  EXPECT_EQ(error_at(folder / "missing"), (folder / "missing").string() + ": no such run folder");
}

/// Runs f in a child whose files end at `bytes`.
template <class F>
std::string with_file_limit(rlim_t bytes, const F& f) {
  return in_child([&] {
    const rlimit limit{bytes, bytes};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    const OneThread one_thread;
    f();
    return std::string("no error");
  });
}

TEST(FullDisk, IsAnErrorThatLeavesTheLastCheckpoint) {
  const TemporaryFolder folder;
  const RolesTask task;  // 86 KB of weights, three times that with the moments
  RunConfig config = config_of(task, 6);
  config.recipe.batch = 2;
  StopAfter observer(2);
  TrainOptions first = stopping(folder / "run", observer);
  {
    const OneThread one_thread;
    train_new(task, config, first);
  }
  const RunFolder run = RunFolder::open(folder / "run");
  TrainOptions options;
  options.run = folder / "run";
  options.resume = true;
  EXPECT_EQ(with_file_limit(100 * 1024, [&] { train_new(task, config, options); }),
            "error: " + run.best_checkpoint().string() + ": cannot write: File too large");
  EXPECT_EQ(load_checkpoint(run.last_checkpoint()).step, 2);
  for (const auto& entry : std::filesystem::directory_iterator(run.path() / "checkpoints")) {
    EXPECT_EQ(entry.path().filename(), "last.safetensors");
  }
}

TEST(FullDisk, MeetsTheLogOfMetricsToo) {
  const TemporaryFolder folder;
  const TinyTask task;
  TrainOptions options;
  options.run = folder / "run";
  options.checkpoint_every = 50;
  options.snapshots = false;
  const std::string error =
      with_file_limit(40 * 1024, [&] { train_new(task, config_of(task, 800), options); });
  const RunFolder run = RunFolder::open(folder / "run");
  EXPECT_EQ(error, "error: " + run.metrics().string() + ": cannot write: File too large");
  const auto lines = read_lines(run.metrics());
  EXPECT_EQ(load_checkpoint(run.last_checkpoint()).step, std::ssize(lines) / 50 * 50);
  for (const std::string& line : lines) EXPECT_TRUE(nlohmann::json::parse(line).is_object());
}

}  // namespace
}  // namespace headlab
