#include "framework/heads/site_telemetry.h"

#include <gtest/gtest.h>

#include "framework/data/copy.h"
#include "framework/data/roles.h"
#include "framework/heads/pattern_summary.h"
#include "models/build.h"
#include "tests/heads/support.h"
#include "tests/support/errors.h"

namespace headlab {
namespace {

TEST(SiteTelemetry, AsksEachSiteOfAnEncoderDecoderForWhatItHas) {
  const CopyTask task;
  const std::unique_ptr<Model> model = build_model(task.needs());
  const Batch batch = task.held_out(0, 0, 3);
  const SiteQuestions questions = site_questions(*model, task.head_targets(), batch);
  ASSERT_EQ(questions.size(), 3U);
  const Needs needs = task.needs();
  const SiteQuestion& cross = questions.at(AttentionSite::cross);
  EXPECT_EQ(cross.n_k, needs.source_context);
  EXPECT_EQ(cross.telemetry.offsets, summary_offsets(needs.context, needs.source_context));
  EXPECT_EQ(cross.telemetry.labels.shape(), Shape({1, 3, needs.context}));
  EXPECT_EQ(cross.label_of(0), 0U);
  const SiteQuestion& encoder = questions.at(AttentionSite::encoder);
  EXPECT_EQ(encoder.telemetry.counted.shape(), Shape({3, needs.source_context}));
  EXPECT_FALSE(encoder.telemetry.labels);
  EXPECT_FALSE(encoder.label_of(0));
  initialise(*model, 1);
  const Looking looking(*model);
  const std::vector<Telemetry> found = layer_telemetry(*model, questions, batch);
  ASSERT_EQ(found.size(), 3U);
  EXPECT_EQ(found[0].heads[0].labels.size(), 0U);
  EXPECT_GT(found[2].heads[0].labels[0].queries, 0);
  for (HeadLayer* layer : head_layers(*model)) EXPECT_FALSE(layer->telemetry_options());
}

TEST(SiteTelemetry, LabelsAreOfQueriesWithSomethingToChoose) {
  const RolesTask task;
  PlantedModel model(task.needs(), {{-1, 0}});
  Batch batch = task.held_out(0, 0, 1);
  Array& maj = batch.head_targets[RolesTask::maj];
  Array& prev = batch.head_targets[RolesTask::prev];
  maj.fill(0);
  prev.fill(unscored);
  prev.data<std::int64_t>()[3] = 1;
  const SiteQuestion q = site_questions(model, task.head_targets(), batch).at(AttentionSite::self);
  const Array even = q.labels(*q.label_of(RolesTask::maj));
  EXPECT_EQ(even.at(0), unscored);  // sees itself alone
  EXPECT_EQ(even.at(1), 0);
  EXPECT_EQ(q.labels(*q.label_of(RolesTask::prev)).at(3), 1);
}

TEST(SiteTelemetry, NamesLabelsThatDoNotFit) {
  const RolesTask task;
  PlantedModel model(task.needs(), {{-1, 0}});
  Batch batch = task.held_out(0, 0, 1);
  const std::string name = task.head_targets()[RolesTask::prev].name;
  batch.head_targets[RolesTask::prev].data<std::int64_t>()[3] = 4;
  EXPECT_EQ(error_of([&] { site_questions(model, task.head_targets(), batch); }),
            "head target: " + name + ": example 0, query 3: key 4 may not be attended to");
  batch.head_targets[RolesTask::prev] = Array::zeros({1, 2}, DType::i64);
  EXPECT_EQ(error_of([&] { site_questions(model, task.head_targets(), batch); }),
            "head target: labels [1, 2] of " + name + " do not fit 1 examples of " +
                std::to_string(task.needs().context) + " queries");
}

}  // namespace
}  // namespace headlab
