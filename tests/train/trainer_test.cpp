#include "framework/train/trainer.h"

#include <set>

#include <nlohmann/json.hpp>

#include "framework/files/line_log.h"
#include "framework/files/run_folder.h"
#include "framework/nn/embedding.h"
#include "framework/ops/elementwise.h"
#include "framework/ops/operators.h"
#include "framework/train/checkpoint.h"
#include "framework/train/evaluation.h"
#include "framework/train/progress.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/training.h"

namespace headlab {
namespace {

TEST(Train, Learns) {
  const TinyTask task;
  RunConfig config = config_of(task, 150);
  config.recipe.batch = 32;
  const Trained trained = train_new(task, config);
  EXPECT_GT(trained.result.losses.front(), 1);
  EXPECT_LT(trained.result.train_loss, 0.5);
  EXPECT_GT(trained.result.evaluation.accuracy, 0.9);
  EXPECT_EQ(trained.result.steps, 150);
  EXPECT_EQ(trained.result.parameters, static_cast<std::int64_t>(config.needs.parameters()));
  EXPECT_FALSE(trained.result.interrupted);
  EXPECT_EQ(trained.result.losses.size(), 150U);
  EXPECT_EQ(trained.result.losses.back(), trained.result.train_loss);
  EXPECT_GT(trained.result.tokens_per_second, 0);
}

TEST(Train, AccumulationIsOneBigBatch) {
  const TinyTask task;
  const RunConfig whole = config_of(task, 8);
  const Trained a = train_new(task, whole);
  for (const std::int64_t parts : {2, 3, 6}) {
    RunConfig config = whole;
    config.accumulation = parts;
    const Trained b = train_new(task, config);
    for (std::size_t i = 0; i < a.result.losses.size(); ++i) {
      EXPECT_NEAR(b.result.losses[i], a.result.losses[i], 1e-4) << parts << " step " << i;
    }
    EXPECT_NEAR(b.result.losses[0], a.result.losses[0], 1e-6) << parts;
  }
}

/// Scores only even tokens, so that micro-batches hold different numbers of pairs.
class Sparse : public TinyTask {
 protected:
  void write(Batch& batch, std::int64_t row, Random& random) const override {
    TinyTask::write(batch, row, random);
    std::int64_t* targets = example_of(batch.targets, row);
    for (std::int64_t i = 0; i < 2 * length; ++i) {
      if (targets[i] % 4 != 1) targets[i] = unscored;
    }
  }
};

TEST(Train, AccumulationWeighsByScoredPairs) {
  const Sparse task;
  RunConfig config = config_of(task, 3);
  const Trained a = train_new(task, config);
  config.accumulation = 6;
  const Trained b = train_new(task, config);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_NEAR(b.result.losses[i], a.result.losses[i], 1e-5) << i;
}

TEST(Train, WeightDecayFollowsTheRecipe) {
  Recipe recipe;
  EXPECT_TRUE(decays(Role::matrix, recipe));
  EXPECT_TRUE(decays(Role::embedding, recipe));
  EXPECT_TRUE(decays(Role::position, recipe));
  EXPECT_FALSE(decays(Role::bias, recipe));
  EXPECT_FALSE(decays(Role::norm, recipe));
  recipe.decay_matrices = recipe.decay_embeddings = recipe.decay_positions = false;
  for (const Role role : {Role::matrix, Role::embedding, Role::position}) EXPECT_FALSE(decays(role, recipe));
}

TEST(Train, ListsWhatDecays) {
  const auto model = build_model(TinyTask().needs());
  Recipe recipe;
  recipe.decay_positions = false;
  EXPECT_EQ(decayed_parameters(*model, recipe),
            (std::vector<std::string>{"embed.token.weight", "blocks.0.attn.qkv.weight",
                                      "blocks.0.attn.out.weight", "blocks.0.mlp.up.weight",
                                      "blocks.0.mlp.down.weight", "readout.linear.weight"}));
}

/// Remembers what it is told.
class Recorder : public Observer {
 public:
  void on_start(Model&, const Task&, std::int64_t first, std::int64_t steps) override {
    note("start", first);
    EXPECT_EQ(steps, 4);
  }
  void before_step(Model& model, std::int64_t step) override {
    note("before", step);
    EXPECT_TRUE(model.training());
  }
  void on_step(Model&, const StepReport& report) override { note("step", report.step); }
  void on_evaluation(Model& model, std::int64_t step, const Evaluation& evaluation) override {
    note("evaluation", step);
    EXPECT_TRUE(model.training());
    EXPECT_GT(evaluation.scored, 0);
  }
  void on_end(Model&) override { note("end", 0); }
  std::string notes;

 private:
  void note(const char* what, std::int64_t step) { notes += what + std::to_string(step) + " "; }
};

TEST(Train, TellsItsObserversInOrder) {
  const TinyTask task;
  Recorder recorder;
  TrainOptions options;
  options.observers = {&recorder};
  options.evaluate_every = 2;
  train_new(task, config_of(task, 4), options);
  EXPECT_EQ(recorder.notes,
            "start0 before0 step1 before1 step2 evaluation2 before2 step3 before3 step4 evaluation4 end0 ");
}

class Evaluates : public Observer {
 public:
  explicit Evaluates(const Task& task) : task_(task) {}
  void on_step(Model& model, const StepReport&) override { evaluate(model, task_, 8); }

 private:
  const Task& task_;
};

TEST(Train, IsNotDisturbedByEvaluationAndObservers) {
  const TinyTask task;
  RunConfig config = config_of(task, 12);
  config.needs.dropout = 0.3;
  const Trained plain = train_new(task, config);
  Evaluates evaluates(task);
  std::FILE* sink = std::tmpfile();
  Progress progress({.out = sink, .always = true});
  TrainOptions options;
  options.evaluate_every = 1;
  options.observers = {&evaluates, &progress};
  const Trained watched = train_new(task, config, options);
  std::fclose(sink);
  EXPECT_EQ(watched.result.losses, plain.result.losses);
  expect_same_parameters(*watched.model, *plain.model);
  // Dropout was really on.
  config.needs.dropout = 0;
  EXPECT_NE(train_new(task, config).result.losses, plain.result.losses);
}

/// Finite logits whose gradient is not: √x at 0 has slope ∞.
class SteepModel : public Model {
 public:
  SteepModel()
      : Model(TinyTask().needs()),
        table(this, "table", Embedding::Options{.vocabulary = TinyTask::kinds, .d_model = 13}),
        steep(this, "steep", {1}, Init::zeros(), Role::bias) {}
  Tensor logits(const Batch& batch) override {
    const Tensor rows = table(batch.inputs[0]);
    return rows + sqrt(steep);
  }
  Child<Embedding> table;
  Parameter steep;
};

TEST(Train, SkipsAStepWhoseGradientIsNotFinite) {
  const TemporaryFolder folder;
  const TinyTask task;
  SteepModel model;
  TrainOptions options;
  options.run = folder / "run";
  const TrainResult result = train(model, task, config_of(task, 3), options);
  EXPECT_EQ(result.losses.size(), 3U);
  SteepModel fresh;
  initialise(fresh, 3);
  expect_same_parameters(model, fresh);
  for (const std::string& line : read_lines(folder.path() / "run" / "metrics.jsonl")) {
    const auto json = nlohmann::json::parse(line);
    EXPECT_EQ(json.at("skipped"), true);
    EXPECT_TRUE(json.at("gradient_norm").is_null());
  }
  const Checkpoint saved = load_checkpoint(folder.path() / "run" / "checkpoints" / "last.safetensors");
  EXPECT_EQ(saved.optimiser.at("adamw.step.table.weight").item(), 0);
}

TEST(Train, FillsItsRunFolder) {
  const TemporaryFolder folder;
  const TinyTask task;
  const RunConfig config = config_of(task, 50);
  TrainOptions options;
  options.run = folder / "run";
  options.evaluate_every = 20;
  options.log_every = 4;
  const Trained trained = train_new(task, config, options);
  const RunFolder run = RunFolder::open(folder / "run");
  EXPECT_EQ(run.read_config(), to_json(config));
  std::vector<std::int64_t> snapshots;
  for (const auto& entry : run.snapshots()) snapshots.push_back(entry.first);
  EXPECT_EQ(snapshots, snapshot_steps(50));
  EXPECT_TRUE(load_checkpoint(run.snapshot(50)).optimiser.empty());

  std::set<std::int64_t> logged;
  double best = HUGE_VAL;
  for (const std::string& line : read_lines(run.metrics())) {
    const auto json = nlohmann::json::parse(line);
    const auto step = json.at("step").get<std::int64_t>();
    EXPECT_TRUE(logged.insert(step).second);
    EXPECT_EQ(json.at("loss"), trained.result.losses[static_cast<std::size_t>(step - 1)]);
    EXPECT_EQ(json.contains("validation_loss"), step % 20 == 0 || step == 50);
    if (json.contains("validation_loss")) best = std::min(best, json.at("validation_loss").get<double>());
  }
  EXPECT_EQ(logged.size(), 13U);  // 4, 8, … 48, 50; 20 and 40 are among them
  EXPECT_EQ(load_checkpoint(run.last_checkpoint()).best_loss, best);
  const Checkpoint best_saved = load_checkpoint(run.best_checkpoint());
  EXPECT_EQ(best_saved.best_loss, best);
  EXPECT_EQ(best_saved.step, best_saved.best_step);
}

}  // namespace
}  // namespace headlab
