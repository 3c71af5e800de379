// Trainings that end early and go on: stopped, killed, continued with other settings.
#include <csignal>
#include <cstdlib>

#include <nlohmann/json.hpp>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "framework/core/parallel.h"
#include "framework/data/roles.h"
#include "framework/data/text_task.h"
#include "framework/files/line_log.h"
#include "framework/files/run_folder.h"
#include "framework/nn/head_layer.h"
#include "framework/train/checkpoint.h"
#include "framework/train/evaluation.h"
#include "framework/train/run.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/training.h"

namespace headlab {
namespace {

RunConfig roles_config() {
  RunConfig config = config_of(RolesTask(), 20, 11);
  config.needs.mlp = 96;
  config.needs.dropout = 0.1;
  config.recipe.warmup_steps = 15;
  config.accumulation = 2;
  return config;
}

/// A table in which every step stands once, with the loss that the whole training had.
void expect_losses_in_log(const std::filesystem::path& path, const std::vector<double>& losses) {
  const auto lines = read_lines(path);
  ASSERT_EQ(lines.size(), losses.size());
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const auto json = nlohmann::json::parse(lines[i]);
    EXPECT_EQ(json.at("step"), i + 1);
    EXPECT_EQ(json.at("loss"), losses[i]) << i;
  }
}

TEST(Resume, TwentyStepsAreTenAndTenBitForBit) {
  const RolesTask task;
  const RunConfig config = roles_config();
  set_threads(1);
  const Trained whole = train_new(task, config);
  for (const int threads : {1, 4}) {
    set_threads(threads);
    const TemporaryFolder folder;
    StopAfter observer(10);
    const Trained half = train_new(task, config, stopping(folder / "run", observer));
    EXPECT_TRUE(half.result.interrupted);
    EXPECT_EQ(half.result.steps, 10);

    TrainOptions options;
    options.run = folder / "run";
    options.resume = true;
    reset_parallel_counters();
    const Trained rest = train_new(task, config, options);
    if (threads > 1) {
      EXPECT_GT(parallel_counters().parallel_loops, 0) << "too small to be parallel";
    }
    EXPECT_EQ(rest.result.steps, 20);
    std::vector<double> losses = half.result.losses;
    losses.insert(losses.end(), rest.result.losses.begin(), rest.result.losses.end());
    EXPECT_EQ(losses, whole.result.losses) << threads;
    expect_same_parameters(*rest.model, *whole.model);
    EXPECT_EQ(rest.result.evaluation.loss, whole.result.evaluation.loss);
    EXPECT_EQ(rest.result.evaluation.accuracy, whole.result.evaluation.accuracy);
    expect_losses_in_log(folder.path() / "run" / "metrics.jsonl", whole.result.losses);
  }
  set_threads(0);
}

TEST(Resume, OfAFinishedRunOnlyEvaluates) {
  const TemporaryFolder folder;
  const TinyTask task;
  TrainOptions options;
  options.run = folder / "run";
  const Trained first = train_new(task, config_of(task, 5), options);
  options.resume = true;
  const Trained again = train_new(task, config_of(task, 5), options);
  EXPECT_TRUE(again.result.losses.empty());
  EXPECT_EQ(again.result.steps, 5);
  EXPECT_EQ(again.result.evaluation.loss, first.result.evaluation.loss);
  EXPECT_EQ(read_lines(folder.path() / "run" / "metrics.jsonl").size(), 5U);
}

TEST(Resume, KeepsTheBestLossOfBefore) {
  const TemporaryFolder folder;
  const TinyTask task;
  RunConfig config = config_of(task, 6);
  config.recipe.learning_rate = 30;  // gets worse and worse
  config.recipe.schedule = Recipe::Schedule::constant;
  StopAfter observer(3);
  TrainOptions options = stopping(folder / "run", observer);
  options.evaluate_every = 1;
  train_new(task, config, options);
  const RunFolder run = RunFolder::open(folder / "run");
  const Checkpoint before = load_checkpoint(run.last_checkpoint());
  ASSERT_TRUE(before.best_loss);
  options = {};
  options.run = folder / "run";
  options.resume = true;
  options.evaluate_every = 1;
  train_new(task, config, options);
  double best = HUGE_VAL;
  for (const std::string& line : read_lines(run.metrics())) {
    best = std::min(best, nlohmann::json::parse(line).at("validation_loss").get<double>());
  }
  EXPECT_EQ(load_checkpoint(run.last_checkpoint()).best_loss, best);
  EXPECT_EQ(load_checkpoint(run.best_checkpoint()).best_loss, best);
}

TEST(Resume, RefusesAnotherTrainingNamingTheField) {
  const TemporaryFolder folder;
  const TinyTask task;
  const RunConfig config = config_of(task, 5);
  TrainOptions options;
  options.run = folder / "run";
  train_new(task, config, options);
  const std::string run = (folder / "run").string();
  EXPECT_EQ(error_of([&] { train_new(task, config, options); }),
            run + ": already holds a trained run; resume it or choose another folder");
  options.resume = true;
  const auto error_with = [&](const auto& change) {
    RunConfig other = config;
    change(other);
    return error_of([&] { train_new(task, other, options); });
  };
  EXPECT_EQ(error_with([](RunConfig& c) { c.needs.heads = 1; }),
            run + ": needs.heads is 3 in config.json and 1 in this training");
  EXPECT_EQ(error_with([](RunConfig& c) { c.recipe.steps = 6; }),
            run + ": recipe.steps is 5 in config.json and 6 in this training");
  EXPECT_EQ(error_with([](RunConfig& c) { c.seed = 4; }),
            run + ": seed is 3 in config.json and 4 in this training");
  // Somebody has put the checkpoint of another run there.
  Checkpoint other = load_checkpoint(RunFolder::open(run).last_checkpoint());
  other.config.accumulation = 3;
  save_checkpoint(RunFolder::open(run).last_checkpoint(), other);
  EXPECT_EQ(error_with([](RunConfig&) {}),
            RunFolder::open(run).last_checkpoint().string() +
                ": accumulation is 3 in the checkpoint and 1 in this training");
  EXPECT_EQ(error_of([&] {
              TrainOptions nowhere;
              nowhere.resume = true;
              train_new(task, config, nowhere);
            }),
            "train: there is no run folder to resume from");
}

TEST(Resume, RefusesATextWithAnotherVocabulary) {
  const TemporaryFolder folder;
  const auto text = [](char c) {
    return TextTask(std::string(200, 'a') + std::string(200, c), {.context = 8});
  };
  const TextTask task = text('b');
  RunConfig config = config_of(task, 2);
  config.needs.layers = 1;
  config.recipe.warmup_steps = 0;
  TrainOptions options;
  options.run = folder / "run";
  train_new(task, config, options);
  options.resume = true;
  EXPECT_NO_THROW(train_new(task, config, options));
  const std::string error = error_of([&] { train_new(text('c'), config, options); });
  EXPECT_NE(error.find(": vocabulary: the text has other characters"), std::string::npos) << error;
}

/// Trains with a checkpoint each step, going on where the folder stands; the process ends then.
[[noreturn]] void train_in_child(const RunConfig& config, const std::filesystem::path& run) {
  try {
    const OneThread one_thread;
    TrainOptions options;
    options.run = run;
    options.resume = RunFolder::is_run(run);
    options.checkpoint_every = 1;
    options.evaluate_every = 10;
    train_new(TinyTask(), config, options);
    std::_Exit(0);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    std::_Exit(1);
  }
}

TEST(Resume, AfterKillsAtRandomMomentsGivesTheSameTraining) {
  const int rounds = std::getenv("HEADLAB_SLOW") != nullptr ? 50 : 5;
  const RunConfig config = config_of(TinyTask(), 60 * rounds);
  const TemporaryFolder folder;
  const std::filesystem::path run = folder / "run";
  Random random(static_cast<std::uint64_t>(::getpid()), Stream::evaluation);
  int kills = 0;
  std::int64_t before = 0;
  for (int round = 0; round < rounds; ++round) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) train_in_child(config, run);
    const timespec time{0, 1000 * (10'000 + random.below(60'000))};
    ::nanosleep(&time, nullptr);
    ::kill(child, SIGKILL);
    int status = 0;
    ::waitpid(child, &status, 0);
    ASSERT_TRUE(WIFSIGNALED(status) || WEXITSTATUS(status) == 0);
    kills += WIFSIGNALED(status) ? 1 : 0;
    const std::filesystem::path last = run / "checkpoints" / "last.safetensors";
    if (!std::filesystem::exists(last)) continue;
    const std::int64_t step = load_checkpoint(last).step;
    EXPECT_GE(step, before);
    before = step;
  }
  EXPECT_GT(kills, 0);
  TrainOptions options;
  options.run = run;
  options.resume = RunFolder::is_run(run);
  options.checkpoint_every = 50;
  options.evaluate_every = 10;
  const Trained resumed = train_new(TinyTask(), config, options);
  const Trained whole = train_new(TinyTask(), config);
  expect_same_parameters(*resumed.model, *whole.model);
  expect_losses_in_log(run / "metrics.jsonl", whole.result.losses);
  for (const auto& entry : std::filesystem::recursive_directory_iterator(run)) {
    EXPECT_EQ(entry.path().string().find("headlab-tmp"), std::string::npos) << entry.path();
  }
  RecordProperty("kills", kills);
  RecordProperty("steps_before_last_kill", static_cast<int>(before));
}

TEST(HeadsOff, GoOffAtTheirStepForGoodWhateverStopsTheTraining) {
  const TinyTask task;
  RunConfig config = config_of(task, 20);
  config.heads_off = {{0, 1, 7}, {0, 2, 0}};
  const TemporaryFolder folder;
  TrainOptions options;
  options.run = folder / "whole";
  const Trained whole = train_new(task, config, options);
  EXPECT_EQ(whole.model->state().size(), build_model(config.needs)->state().size());
  StopAfter observer(9);
  train_new(task, config, stopping(folder / "run", observer));
  TrainOptions resumed;
  resumed.run = folder / "run";
  resumed.resume = true;
  set_threads(2);
  const Trained rest = train_new(task, config, resumed);
  set_threads(0);
  expect_same_parameters(*rest.model, *whole.model);
  EXPECT_EQ(rest.result.evaluation.loss, whole.result.evaluation.loss);
  const RunConfig plain = config_of(task, 20);
  const Trained intact = train_new(task, plain);
  // The first step in which head 1 is missed is the eighth; head 2 was never there.
  RunConfig late = plain;
  late.heads_off = {{0, 1, 7}};
  const Trained later = train_new(task, late);
  for (std::size_t i = 0; i < 7; ++i) EXPECT_EQ(later.result.losses[i], intact.result.losses[i]) << i;
  EXPECT_NE(later.result.losses[7], intact.result.losses[7]);
  EXPECT_NE(whole.result.losses[0], intact.result.losses[0]);
  // Whoever loads the run has them off; before their step they are on.
  Catalogue catalogue;
  catalogue.build_with(build_model).add(std::make_shared<TinyTask>());
  const LoadedRun last = load_run(folder / "whole", catalogue);
  EXPECT_EQ(last.config.heads_off, config.heads_off);
  const Array gate = head_layers(*last.model)[0]->gate().value();
  EXPECT_EQ(std::vector<float>(gate.values<float>().begin(), gate.values<float>().end()),
            (std::vector<float>{1, 0, 0}));
  EXPECT_EQ(evaluate(*last.model, task, 3).loss, whole.result.evaluation.loss);
  const LoadedRun first = load_run(folder / "whole", catalogue, RunWeights::snapshot(1));
  EXPECT_EQ(head_layers(*first.model)[0]->gate().value().at(1), 1);
}

TEST(HeadsOff, AreRefusedWhereTheyAreNot) {
  const TinyTask task;
  RunConfig config = config_of(task, 20);
  config.heads_off = {{1, 0, 3}};
  EXPECT_EQ(error_of([&] { train_new(task, config); }),
            "train: head 1.0 cannot go off: the model has 1 layers with heads");
  config.heads_off = {{0, 3, 3}};
  EXPECT_EQ(error_of([&] { train_new(task, config); }), "train: head 0.3 cannot go off: layer 0 has 3 heads");
  config.heads_off = {{0, 0, 20}};
  EXPECT_EQ(error_of([&] { train_new(task, config); }),
            "train: head 0.0 goes off at step 20, allowed: 0 to 19");
}

}  // namespace
}  // namespace headlab
