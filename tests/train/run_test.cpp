#include "framework/train/run.h"

#include <filesystem>

#include "framework/files/atomic_file.h"
#include "framework/files/run_folder.h"
#include "framework/train/evaluation.h"
#include "framework/train/generate.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/training.h"

namespace headlab {
namespace {

Catalogue tiny_catalogue() {
  Catalogue catalogue;
  catalogue.add(std::make_shared<TinyTask>()).build_with(build_model);
  return catalogue;
}

std::string some_text() {
  std::string text;
  for (int i = 0; i < 60; ++i) text += i % 3 == 0 ? "hot cocoa, " : "a cold \xc3\xa9 ";
  return text;
}

RunConfig small_text_config(const TextTask& task, const std::string& path) {
  RunConfig config = config_of(task, 4);
  config.task = path;
  config.needs.d_model = 16;
  config.needs.layers = 1;
  config.needs.mlp = 0;
  config.recipe.warmup_steps = 1;
  return config;
}

TEST(OpenTask, KnowsNamesAndTexts) {
  const TemporaryFolder folder;
  const Catalogue catalogue = tiny_catalogue();
  EXPECT_EQ(open_task(catalogue, "tiny")->name(), "tiny");
  write_file(folder / "some.txt", some_text());
  EXPECT_EQ(open_task(catalogue, (folder / "some.txt").string(), {.context = 8})->name(), "text");
  EXPECT_EQ(error_of([&] { open_task(catalogue, "tinny"); }),
            "task: there is no task and no text file 'tinny' (did you mean 'tiny'?)");
  const std::string missing = (folder / "no.txt").string();
  EXPECT_EQ(error_of([&] { open_task(catalogue, missing); }),
            missing + ": cannot open the text: No such file or directory");
}

TEST(LoadRun, RebuildsTheModelWithItsWeights) {
  const TemporaryFolder folder;
  const TinyTask task;
  TrainOptions options;
  options.run = folder / "run";
  options.evaluate_every = 5;
  const Trained trained = train_new(task, config_of(task, 20), options);
  const Catalogue catalogue = tiny_catalogue();

  const LoadedRun last = load_run(folder / "run", catalogue);
  EXPECT_EQ(last.step, 20);
  EXPECT_EQ(last.task->name(), "tiny");
  EXPECT_FALSE(last.model->training());
  expect_same_parameters(*last.model, *trained.model);
  EXPECT_EQ(evaluate(*last.model, task, 3).loss, trained.result.evaluation.loss);

  const LoadedRun best = load_run(folder / "run", catalogue, RunWeights::best());
  EXPECT_EQ(evaluate(*best.model, task, 3).loss, *last.best_loss);

  const LoadedRun first = load_run(folder / "run", catalogue, RunWeights::snapshot(0));
  const auto untrained = build_model(task.needs());
  initialise(*untrained, 3);
  EXPECT_EQ(first.step, 0);
  expect_same_parameters(*first.model, *untrained);
  EXPECT_EQ(error_of([&] { load_run(folder / "run", catalogue, RunWeights::snapshot(21)); }),
            (folder / "run").string() +
                ": has no step-000021.safetensors yet: the run was stopped before it was saved");
}

TEST(LoadRun, SamplesFromATextRunWithoutTheText) {
  const TemporaryFolder folder;
  const std::string path = (folder / "some.txt").string();
  write_file(path, some_text());
  TrainOptions options;
  options.run = folder / "run";
  const auto task = std::make_shared<TextTask>(TextTask::open(path, {.context = 8}));
  train_new(*task, small_text_config(*task, path), options);

  Catalogue catalogue;
  catalogue.build_with(build_model);
  LoadedRun run = load_run(folder / "run", catalogue);
  ASSERT_TRUE(run.task);
  EXPECT_TRUE(*run.task->vocabulary() == *task->vocabulary());

  std::filesystem::remove(path);
  run = load_run(folder / "run", catalogue);
  EXPECT_FALSE(run.task);
  EXPECT_EQ(run.task_error, path + ": cannot open the text: No such file or directory");
  ASSERT_TRUE(run.vocabulary);
  const auto prompt = run.vocabulary->encode("a \xc3\xa9");
  EXPECT_EQ(generate(*run.model, prompt, {.tokens = 11}).size(), 11U);

  write_file(path, some_text() + "!");
  run = load_run(folder / "run", catalogue);
  EXPECT_FALSE(run.task);
  EXPECT_NE(run.task_error, "");
}

TEST(LoadRun, SaysWhatIsMissing) {
  const TemporaryFolder folder;
  const Catalogue catalogue = tiny_catalogue();
  EXPECT_EQ(error_of([&] { load_run(folder / "none", catalogue); }),
            (folder / "none").string() + ": no such run folder");
  const TinyTask task;
  TrainOptions options;
  options.run = folder / "run";
  train_new(task, config_of(task, 3), options);
  std::filesystem::remove(folder.path() / "run" / "checkpoints" / "last.safetensors");
  EXPECT_EQ(
      error_of([&] { load_run(folder / "run", catalogue); }),
      (folder / "run").string() + ": has no last.safetensors yet: the run was stopped before it was saved");
}

}  // namespace
}  // namespace headlab
