#include "framework/heads/watch.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "framework/data/copy.h"
#include "framework/data/prev.h"
#include "framework/files/atomic_file.h"
#include "framework/files/line_log.h"
#include "framework/heads/pattern_summary.h"
#include "tests/heads/support.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/training.h"

namespace headlab {
namespace {

constexpr std::int64_t steps = 7;

/// Two layers with dropout, since that is what a look could disturb.
RunConfig small_config() {
  const PrevTask task;
  RunConfig config = config_of(task, steps);
  config.needs.layers = 2;
  config.needs.heads = 2;
  config.needs.d_model = 8;
  config.needs.dropout = 0.1;
  config.recipe.batch = 3;
  return config;
}

/// Trains into `run`, with a look every so many steps.
Trained watched(const std::filesystem::path& run, std::int64_t every, TrainOptions options = {}) {
  HeadWatch watch(run, every, small_config().seed);
  options.run = run;
  options.observers.push_back(&watch);
  return train_new(PrevTask(), small_config(), options);
}

std::vector<std::int64_t> steps_in(const std::filesystem::path& run) {
  const Array step = read_safetensors(run / "heads.safetensors").arrays.at("step");
  const auto values = step.values<std::int64_t>();
  return {values.begin(), values.end()};
}

std::string bytes_of_heads(const std::filesystem::path& run) { return read_file(run / "heads.safetensors"); }

TEST(HeadWatch, WritesARowEverySoManyStepsAndAtTheLast) {
  const TemporaryFolder folder;
  TrainOptions options;
  options.log_every = 100;
  watched(folder / "run", 3, options);
  EXPECT_EQ(steps_in(folder / "run"), (std::vector<std::int64_t>{3, 6, 7}));
  std::vector<std::pair<std::int64_t, std::int64_t>> rows;
  for (const std::string& line : read_lines(folder / "run" / "metrics.jsonl")) {
    const auto json = nlohmann::json::parse(line);
    rows.emplace_back(json.at("step"), json.at("heads_row"));
  }
  EXPECT_EQ(rows, (std::vector<std::pair<std::int64_t, std::int64_t>>{{3, 0}, {6, 1}, {7, 2}}));
}

TEST(HeadWatch, ChangesNoBitOfTheTraining) {
  const TemporaryFolder folder;
  const Trained seen = watched(folder / "run", 1);
  const Trained unseen = train_new(PrevTask(), small_config());
  EXPECT_EQ(seen.result.losses, unseen.result.losses);
  expect_same_parameters(*seen.model, *unseen.model);
  for (HeadLayer* layer : head_layers(*seen.model)) EXPECT_FALSE(layer->telemetry_options());
}

TEST(HeadWatch, WritesWhatTheHeadsOfTheModelDo) {
  const TemporaryFolder folder;
  const PrevTask task;
  const Trained trained = watched(folder / "run", 3);
  const Safetensors file = read_safetensors(folder / "run" / "heads.safetensors");
  const Batch batch = task.held_out(small_config().seed, 0, 64, HeldOut::score);
  const Looking looking(*trained.model);
  const SiteQuestions questions = site_questions(*trained.model, task.head_targets(), batch);
  const HeadTelemetry head = layer_telemetry(*trained.model, questions, batch)[1].heads[1];
  const SiteQuestion& question = questions.at(AttentionSite::self);
  const PatternSummary s = pattern_summary(head, question.telemetry.offsets.front());
  const auto last = [&](const std::string& name, std::int64_t index = 0) {
    const Array& array = file.arrays.at("blocks.1.attn." + name);
    EXPECT_EQ(array.dim(0), 3);
    const std::int64_t width = array.rank() == 3 ? array.dim(2) : 1;
    return static_cast<float>(array.at((2 * 2 + 1) * width + index));
  };
  EXPECT_EQ(last("entropy"), static_cast<float>(s.entropy));
  EXPECT_EQ(last("normalised_entropy"), static_cast<float>(s.normalised_entropy));
  EXPECT_EQ(last("effective_keys"), static_cast<float>(s.effective_keys));
  EXPECT_EQ(last("confidence"), static_cast<float>(s.confidence));
  EXPECT_EQ(last("distance"), static_cast<float>(s.distance));
  EXPECT_EQ(last("sink_mass"), static_cast<float>(s.sink_mass));
  EXPECT_EQ(last("self_mass"), static_cast<float>(s.self_mass));
  EXPECT_EQ(last("offset_mass", -1 - s.first_offset), static_cast<float>(s.mass_at(-1)));
  EXPECT_EQ(last("offset_share", -1 - s.first_offset), static_cast<float>(s.share_at(-1)));
  EXPECT_EQ(last("target_mass"), static_cast<float>(head.labels[0].mean_mass()));
  EXPECT_GT(last("duplicate_mass"), 0);
  EXPECT_EQ(nlohmann::json::parse(file.metadata.at("blocks.1.attn.offsets")),
            nlohmann::json(question.telemetry.offsets));
  EXPECT_EQ(file.metadata.at("blocks.1.attn.targets"), R"(["t-1"])");
  EXPECT_EQ(file.metadata.at("format"), HeadWatch::format);
}

TEST(HeadWatch, GoesOnWhereAnInterruptedTrainingStopped) {
  const TemporaryFolder folder;
  watched(folder / "whole", 2);
  StopAfter stop(3);
  watched(folder / "parts", 2, stopping(folder / "parts", stop));
  EXPECT_EQ(steps_in(folder / "parts"), (std::vector<std::int64_t>{2}));
  TrainOptions resume;
  resume.resume = true;
  watched(folder / "parts", 2, resume);
  EXPECT_EQ(bytes_of_heads(folder / "parts"), bytes_of_heads(folder / "whole"));
}

TEST(HeadWatch, DropsRowsOfStepsThatAreStillToCome) {
  const TemporaryFolder folder;
  watched(folder / "whole", 2);
  StopAfter stop(5);
  watched(folder / "parts", 2, stopping(folder / "parts", stop));
  // As if the process had been killed at the end, with its last checkpoint at step 5.
  write_file(folder / "parts" / "heads.safetensors", bytes_of_heads(folder / "whole"));
  const Trained other{build_model(small_config().needs), {}};
  HeadWatch watch(folder / "parts", 2, small_config().seed);
  watch.on_start(*other.model, PrevTask(), 5, steps);
  EXPECT_EQ(steps_in(folder / "parts"), (std::vector<std::int64_t>{2, 4}));
  TrainOptions resume;
  resume.resume = true;
  watched(folder / "parts", 2, resume);
  EXPECT_EQ(bytes_of_heads(folder / "parts"), bytes_of_heads(folder / "whole"));
}

TEST(HeadWatch, SaysFromTheStartThatARunIsWatched) {
  const TemporaryFolder folder;
  StopAfter stop(1);
  watched(folder / "run", 5, stopping(folder / "run", stop));
  EXPECT_EQ(steps_in(folder / "run"), (std::vector<std::int64_t>{}));
  EXPECT_EQ(watched_every(folder / "run"), 5);
  TrainOptions unseen;
  unseen.run = folder / "other";
  train_new(PrevTask(), small_config(), unseen);
  EXPECT_FALSE(watched_every(folder / "other"));
}

TEST(HeadWatch, LooksAtEachSiteOfAnEncoderDecoder) {
  const TemporaryFolder folder;
  const CopyTask task;
  RunConfig config = config_of(task, 2);
  HeadWatch watch(folder / "run", 1, 0);
  TrainOptions options;
  options.run = folder / "run";
  options.observers = {&watch};
  train_new(task, config, options);
  const Safetensors file = read_safetensors(folder / "run" / "heads.safetensors");
  const std::int64_t heads = config.needs.heads;
  EXPECT_EQ(file.arrays.at("encoder.0.attn.entropy").shape(), Shape({2, heads}));
  EXPECT_EQ(file.arrays.at("decoder.0.attn.duplicate_mass").shape(), Shape({2, heads}));
  EXPECT_EQ(file.arrays.at("decoder.0.cross.target_mass").shape(), Shape({2, heads, 1}));
  EXPECT_EQ(file.arrays.count("encoder.0.attn.target_mass"), 0U);
  EXPECT_EQ(file.arrays.count("decoder.0.cross.duplicate_mass"), 0U);
  EXPECT_EQ(file.metadata.at("decoder.0.cross.attention"), "cross");
}

TEST(HeadWatch, NamesWhatIsWrong) {
  const TemporaryFolder folder;
  EXPECT_EQ(error_of([&] { HeadWatch(folder / "run", 0, 0); }), "watch: every 0 steps, needs at least 1");
  watched(folder / "run", 3);
  Needs needs = small_config().needs;
  needs.heads = 4;
  const std::unique_ptr<Model> model = build_model(needs);
  HeadWatch watch(folder / "run", 3, 0);
  const std::string file = (folder / "run" / "heads.safetensors").string();
  EXPECT_EQ(error_of([&] { watch.on_start(*model, PrevTask(), 3, steps); }),
            file + ": blocks.0.attn.confidence is f32 [3, 2], of this model it is f32 [3, 4]");
  const PrevTask task;
  PlantedModel silent(task.needs(), {{-1, 0}});
  silent.attn->gives_telemetry = false;
  EXPECT_EQ(error_of([&] { watch.on_start(silent, task, 0, steps); }),
            "heads: layer attn gives no telemetry");
  write_safetensors(file, {}, {{"format", "another"}});
  EXPECT_EQ(error_of([&] { watched_every(folder / "run"); }),
            file + ": is no file of what heads did: its format is not 'headlab heads 1'");
}

}  // namespace
}  // namespace headlab
