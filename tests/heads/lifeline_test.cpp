// Heads of different models set side by side, and heads followed through a training.
#include "framework/heads/lifeline.h"

#include <algorithm>
#include <numeric>

#include <gtest/gtest.h>

#include "framework/core/random.h"
#include "framework/data/offsets.h"
#include "framework/data/prev.h"
#include "framework/heads/matching.h"
#include "framework/train/trainer.h"
#include "models/build.h"
#include "tests/heads/planted.h"
#include "tests/heads/support.h"
#include "tests/support/errors.h"
#include "tests/support/temporary_folder.h"

namespace headlab {
namespace {

using Assignment = std::vector<std::optional<std::int64_t>>;

TEST(Assign, FindsTheCheapestByHand) {
  // Taking the cheapest of each row first (0 → 0) would cost 1 + 9.
  EXPECT_EQ(assign({1, 2, 2, 9}, 2, 2), (Assignment{1, 0}));
  EXPECT_EQ(assign({5, 1, 7}, 1, 3), (Assignment{1}));
  EXPECT_EQ(assign({5, 1, 7}, 3, 1), (Assignment{std::nullopt, 0, std::nullopt}));
  EXPECT_EQ(assign({}, 0, 0), Assignment{});
  EXPECT_EQ(assign({}, 2, 0), (Assignment{std::nullopt, std::nullopt}));
  EXPECT_EQ(error_of([] { assign({1}, 2, 1); }), "assign: 1 costs do not fit 2 rows and 1 columns");
}

TEST(Assign, CostsAsLittleAsTheBestOfAllOrders) {
  Random random(4, Stream::statistics, 0);
  for (int i = 0; i < 30; ++i) {
    const std::int64_t n = 1 + random.below(6);
    std::vector<double> cost;
    for (std::int64_t c = 0; c < n * n; ++c) cost.push_back(static_cast<double>(random.below(7)) - 3);
    const auto total = [&](const auto& column_of) {
      double sum = 0;
      for (std::int64_t r = 0; r < n; ++r) sum += cost[static_cast<std::size_t>(r * n + column_of(r))];
      return sum;
    };
    std::vector<std::int64_t> order(static_cast<std::size_t>(n));
    std::iota(order.begin(), order.end(), 0);
    double best = 1e9;
    do {
      best = std::min(best, total([&](std::int64_t r) { return order[static_cast<std::size_t>(r)]; }));
    } while (std::next_permutation(order.begin(), order.end()));
    const Assignment found = assign(cost, n, n);
    EXPECT_EQ(total([&](std::int64_t r) { return *found[static_cast<std::size_t>(r)]; }), best);
  }
}

HeadMatching matching_of(Model& a, Model& b, const Task& task) {
  const Looking at_a(a);
  const Looking at_b(b);
  return match_heads(a, b, task, 0);
}

TEST(MatchHeads, FindsHeadsThatChangedPlacesAndLeavesStrangersAlone) {
  const OffsetsTask task;
  PlantedModel a(task.needs(), {{-1, 0}, {-3, 0}, {0, 0, true}, {-5, 0}});
  PlantedModel b(task.needs(), {{0, 0, true}, {-2, 0}, {-1, 0}, {-3, 0}});
  const HeadMatching found = matching_of(a, b, task);
  ASSERT_EQ(found.heads.size(), 4U);
  EXPECT_EQ(found.heads[0].partner, (HeadId{0, 2}));
  EXPECT_EQ(found.heads[1].partner, (HeadId{0, 3}));
  EXPECT_EQ(found.heads[2].partner, std::nullopt);  // an even head is as near to one in any order
  EXPECT_EQ(found.heads[2].distance, 0);
  EXPECT_EQ(found.heads[3].partner, std::nullopt);  // −5 is left with −2
  EXPECT_GT(*found.heads[3].distance, *found.heads[3].null);
  EXPECT_EQ(found.matched(), 2);
  EXPECT_EQ(found.heads[0].distance, 0);
  EXPECT_GT(*found.heads[0].null, 0.3);
  PlantedModel few(task.needs(), {{-3, 0}});
  const HeadMatching left = matching_of(a, few, task);
  EXPECT_EQ(left.heads[1].partner, (HeadId{0, 0}));
  EXPECT_FALSE(left.heads[0].distance);
}

TEST(MatchHeads, WantsAsManyLayers) {
  Needs needs = PlantTask().needs();
  const auto one = build_model(needs);
  needs.layers = 2;
  const auto two = build_model(needs);
  EXPECT_EQ(error_of([&] { matching_of(*one, *two, PlantTask()); }),
            "match_heads: models of 1 and 2 layers with heads have no common order");
}

TEST(ChangePoint, IsTheBestPairOfLevels) {
  const std::vector<double> course{3, 3, 3, 1, 1, 1, 1};
  const ChangePoint c = *change_point(course);
  EXPECT_EQ(c.index, 3U);
  EXPECT_NEAR(c.before, 3, 1e-12);
  EXPECT_NEAR(c.after, 1, 1e-12);
  EXPECT_NEAR(c.explained, 1, 1e-12);
  // Two levels, 1.5 and 3.5, leave 1 of the 5 about the mean of 2.5.
  const std::vector<double> line{1, 2, 3, 4};
  EXPECT_EQ(change_point(line)->index, 2U);
  EXPECT_NEAR(change_point(line)->explained, 0.8, 1e-12);
  EXPECT_FALSE(change_point(std::vector<double>{1, 2, 3}));
  EXPECT_FALSE(change_point(std::vector<double>{2, 2, 2, 2, 2}));
  EXPECT_FALSE(change_point(std::vector<double>{1, 2, std::nan(""), 4}));
}

TEST(LifeOf, DatesTheBirthOfPlantedHeads) {
  const PlantTask task;
  const Needs needs = task.needs();
  std::vector<Moment> moments;
  const auto keep = [&](std::int64_t step, const std::vector<std::pair<std::int64_t, Plant>>& plants) {
    PlantedDecoder planted(needs, 9);
    for (const auto& plant : plants) planted.plant(0, plant.first, plant.second);
    moments.push_back({step, planted.model().state()});
  };
  keep(0, {});
  keep(5, {{1, Plant::previous}});
  keep(10, {});
  keep(20, {{1, Plant::previous}});
  keep(40, {{1, Plant::previous}, {2, Plant::sink}});
  const auto model = build_model(needs);
  const UntrainedHeads untrained = untrained_heads(build_model, needs, task, 7, 200);
  const RunLife life = life_of(*model, build_model, task, 3, moments, untrained);
  EXPECT_EQ(life.steps, (std::vector<std::int64_t>{0, 5, 10, 20, 40}));
  EXPECT_EQ(life.heads[1].role, "previous token");
  EXPECT_EQ(life.heads[1].born, 3U);  // at 10 it was gone again
  EXPECT_EQ(life.heads[1].settled, 3U);
  EXPECT_GT(life.heads[1].strength[1], 0.9);
  EXPECT_EQ(life.heads[1].strength[2], 0);
  EXPECT_EQ(life.heads[2].role, "first token (sink)");
  EXPECT_EQ(life.heads[2].born, 4U);
  EXPECT_EQ(life.heads[2].change->index, 4U);
  EXPECT_EQ(life.heads[3].role, "");
  EXPECT_FALSE(life.heads[3].born);
  EXPECT_EQ(life.heads[3].strength, std::vector<double>(5));
  EXPECT_EQ(life.heads[3].settled, 0U);  // it never changed
  EXPECT_EQ(life.births.at("previous token"), 3U);
  EXPECT_EQ(life.births.at("first token (sink)"), 4U);
  std::swap(moments[0], moments[1]);
  EXPECT_EQ(error_of([&] { life_of(*model, build_model, task, 3, moments, untrained); }),
            "life-line: step 0 comes behind step 5");
}

TEST(CourseOf, GivesTheSameWeightsFromSnapshotsAndFromTrainingAgain) {
  const TemporaryFolder folder;
  Catalogue catalogue;
  catalogue.add(std::make_shared<PrevTask>()).build_with(build_model);
  const PrevTask task;
  RunConfig config{.task = "prev", .needs = task.needs(), .recipe = task.recipe(), .seed = 2};
  config.needs.heads = 2;
  config.recipe.steps = 20;
  config.recipe.batch = 3;
  for (const bool snapshots : {true, false}) {
    TrainOptions options;
    options.run = folder.path() / (snapshots ? "with" : "without");
    options.snapshots = snapshots;
    train(*build_model(config.needs), task, config, options);
  }
  const auto course = [&](const char* name) {
    return course_of(load_run(folder.path() / name, catalogue), folder.path() / name, catalogue);
  };
  const Course kept = course("with");
  const Course again = course("without");
  const LoadedRun run = load_run(folder / "with", catalogue);
  const Course close = course_of(run, folder / "with", catalogue, 8);
  ASSERT_EQ(close.moments.size(), 4U);
  EXPECT_EQ(close.moments[2].step, 16);
  EXPECT_EQ(close.moments[3].step, 20);
  EXPECT_EQ(error_of([&] { course_of(run, folder / "with", catalogue, 0); }),
            "life-line: every 0 steps, needs at least 1");
  EXPECT_FALSE(kept.trained_again);
  EXPECT_TRUE(again.trained_again);
  EXPECT_EQ(kept.loss_steps, again.loss_steps);
  EXPECT_EQ(kept.loss_steps.size(), 20U);
  ASSERT_EQ(kept.moments.size(), again.moments.size());
  EXPECT_EQ(again.moments.front().step, 0);
  EXPECT_EQ(again.moments.back().step, 20);
  for (std::size_t i = 0; i < kept.moments.size(); ++i) {
    EXPECT_EQ(kept.moments[i].step, again.moments[i].step);
    for (const auto& entry : kept.moments[i].weights) {
      const Array& other = again.moments[i].weights.at(entry.first);
      EXPECT_TRUE(std::ranges::equal(entry.second.values<float>(), other.values<float>())) << entry.first;
    }
  }
}

}  // namespace
}  // namespace headlab
