// Models are what the needs say.
#include <gtest/gtest.h>

#include "framework/nn/module.h"
#include "framework/train/evaluation.h"
#include "framework/train/staged.h"
#include "models/build.h"
#include "tests/data/support.h"
#include "tests/support/goldens.h"

namespace headlab {
namespace {

TEST(Needs, CountTheParametersOfTheModel) {
  const auto expect = [](const Needs& needs, const std::string& name) {
    EXPECT_EQ(needs.parameters(), static_cast<double>(build_model(needs)->parameter_count())) << name;
  };
  for (const auto& task : generated_tasks()) {
    Needs needs = task->needs();
    expect(needs, task->name());
    needs.smeared_keys = true;
    needs.positions = Needs::Positions::relative;
    needs.heads = 2;
    expect(needs, task->name() + " with relative and smeared keys");
    needs.causal = false;
    expect(needs, task->name() + " both ways");
  }
}

TEST(Decoder, ReadsPatchesBehindAClassToken) {
  const GlyphsTask task;
  const auto model = build_model(task.needs());
  initialise(*model, 1);
  const Batch batch = task.batch(0, 0, 3);
  const Array logits = model->logits(batch).value();
  EXPECT_EQ(logits.shape(), Shape({3, 17, 4}));
  // The class token sees every patch, wherever it is.
  for (const std::int64_t patch : {0, 15}) {
    Batch other = batch;
    other.inputs[0] = batch.inputs[0].copy();
    other.inputs[0].data<float>()[patch * 16] += 1;
    EXPECT_NE(model->logits(other).value().at(0), logits.at(0));
    EXPECT_EQ(model->logits(other).value().at(17 * 4), logits.at(17 * 4));
  }
  EXPECT_FALSE(model->continues());
}

TEST(Decoder, PooledPatchesAreAMeanWithoutPlaces) {
  const GlyphsTask task;
  Needs needs = task.needs();
  needs.pooled = true;
  needs.positions = Needs::Positions::none;
  needs.head_size = 64;
  needs.layer_heads = {0, 0};
  const auto model = build_model(needs);
  initialise(*model, 1);
  const Batch batch = task.batch(0, 0, 3);
  Batch other = batch;
  other.inputs[0] = batch.inputs[0].copy();
  float* pixels = other.inputs[0].data<float>();
  std::swap_ranges(pixels, pixels + 16, pixels + 5 * 16);  // patches 0 and 5 change places
  const Array first = model->logits(batch).value();
  const Array second = model->logits(other).value();
  EXPECT_EQ(first.shape(), Shape({3, 17, 4}));
  for (std::int64_t c = 0; c < 4; ++c) EXPECT_NEAR(first.at(c), second.at(c), 1e-5);
  EXPECT_NE(first.at(1 * 4), second.at(1 * 4));  // others are read by themselves
  pixels[0] += 1;
  EXPECT_NE(model->logits(other).value().at(0), second.at(0));
  EXPECT_FALSE(model->continues());

  // In stages the same, first position or not.
  auto& staged = dynamic_cast<Staged&>(*model);
  Staged::State state = staged.begin(batch);
  for (std::int64_t stage = 0; stage < staged.stages(); ++stage) {
    state = staged.run_stage(stage, batch, std::move(state), 3);
  }
  EXPECT_TRUE(same_bits(staged.read_out(state.back()).value(), first));
}

TEST(Decoder, PaddingIsNoKey) {
  const SensesTask task;
  const auto model = build_model(task.needs());
  initialise(*model, 1);
  Batch batch = task.batch(0, 0, 8);
  const Array logits = model->logits(batch).value();
  const Batch before = batch;
  batch.inputs[0] = batch.inputs[0].copy();
  for (std::int64_t i = 0; i < batch.inputs[0].size(); ++i) {
    if (batch.valid.at(i) == 0) batch.inputs[0].data<std::int64_t>()[i] = 17;
  }
  const Array changed = model->logits(batch).value();
  for (std::int64_t i = 0; i < logits.size(); ++i) {
    if (batch.valid.at(i / 8) == 1) {
      EXPECT_EQ(logits.at(i), changed.at(i));
    }
  }
}

// agreement's first probe by hand.
TEST(Probes, CompareSomeClassesAndCountWhatTheyStandFor) {
  const AgreementTask task;
  const auto model = build_model(task.needs());
  initialise(*model, 1);
  const Probe probe = task.probes()[0];
  std::int64_t right = 0, counted = 0;
  for (std::int64_t first = 0; first < 1024; first += 256) {
    const Batch batch = task.held_out(0, first, 256);
    const Array logits = model->logits(batch).value();
    for (std::int64_t i = 0; i < batch.probes[0].size(); ++i) {
      const std::int64_t answer = batch.probes[0].data<std::int64_t>()[i];
      if (answer == unscored) continue;
      std::size_t best = 0;
      for (std::size_t c = 0; c < 4; ++c) {
        if (logits.at(i * 58 + probe.classes[c]) > logits.at(i * 58 + probe.classes[best])) best = c;
      }
      ++counted;
      right += probe.answers[best] == answer;
    }
  }
  const Evaluation evaluation = evaluate(*model, task, 0);
  EXPECT_EQ(evaluation.scored, counted);
  EXPECT_EQ(evaluation.accuracy, static_cast<double>(right) / static_cast<double>(counted));
  EXPECT_EQ(task.answer_names(), (std::vector<std::string>{"number", "tense"}));
  EXPECT_EQ(RolesTask().answer_names().size(), 4U);
}

}  // namespace
}  // namespace headlab
