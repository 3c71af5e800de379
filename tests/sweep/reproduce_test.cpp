#include "framework/sweep/reproduce.h"

#include <nlohmann/json.hpp>

#include "framework/core/check.h"
#include "framework/data/roles.h"
#include "framework/files/json_file.h"
#include "framework/heads/analyse.h"
#include "framework/heads/knockout.h"
#include "framework/report/reproduction.h"
#include "framework/sweep/measure.h"
#include "models/build.h"
#include "tests/support/errors.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/tiny_task.h"

namespace headlab {
namespace {

class Claiming final : public TinyTask {
 public:
  explicit Claiming(std::vector<Claim> claims) : claims_(std::move(claims)) {}
  std::vector<Claim> claims() const override { return claims_; }
  std::int64_t measured_steps() const override { return 4; }

 private:
  std::vector<Claim> claims_;
};

Catalogue catalogue_of(const Claiming& task) {
  Catalogue catalogue;
  catalogue.build_with(build_model).add(std::make_shared<Claiming>(task.claims()));
  return catalogue;
}

TEST(Judge, TheMeanMustBeInTheRangeAndEverySeedThere) {
  const Claim claim{.says = "x", .heads = {4}, .lower = .4, .upper = .6};
  EXPECT_TRUE(judge(claim, 4, {.3, .5, .7}).holds);  // .5
  EXPECT_EQ(judge(claim, 4, {.3, .5, .7}).in_range, 1);
  EXPECT_FALSE(judge(claim, 4, {.7, .5, .7}).holds);
  EXPECT_FALSE(judge(claim, 4, {.2, .3, .3}).holds);
  EXPECT_FALSE(judge(claim, 4, {.5, std::nullopt, .5}).holds);
  EXPECT_FALSE(judge(claim, 4, {}).holds);
  EXPECT_TRUE(judge({.says = "x", .heads = {4}, .lower = .5}, 4, {.5}).holds);  // ends belong to it
}

TEST(Judge, OrThatManySeedsByThemselves) {
  const Claim claim{.says = "x", .heads = {4}, .lower = .4, .seeds = .8};
  EXPECT_TRUE(judge(claim, 4, {.5, .5, .5, .5, 0}).holds);
  EXPECT_TRUE(judge(claim, 4, {.5, .5, .5, .5, std::nullopt}).holds);
  EXPECT_FALSE(judge(claim, 4, {.5, .5, .5, 0, 0}).holds);
}

TEST(Reproduce, MeasuresEveryClaimAndGoesOnWhereItStopped) {
  const Claim::Setting two_layers{.name = "two layers, d_k 5", .steps = 2, .layers = 2, .head_size = 5};
  const Claiming task({{.says = "accuracy", .heads = {1, 3}, .lower = 0},
                       {.says = "gain", .heads = {3}, .lower = 2, .minus = 1},
                       {.says = "heads",
                        .measure = Measure::distinct_owners,
                        .heads = {2},
                        .upper = 1,
                        .setting = two_layers},
                       {.says = "half", .measure = Measure::half_step, .heads = {3}, .upper = 1}});
  const Catalogue catalogue = catalogue_of(task);
  const TemporaryFolder folder;
  const ReproduceOptions options{.seeds = 2, .folder = folder.path() / "tiny", .workers = 1};
  const Reproduction first = reproduce(task, catalogue, options);
  ASSERT_EQ(first.claims.size(), 5U);
  EXPECT_EQ(first.runs, 6);
  EXPECT_EQ(first.made, 6);
  EXPECT_EQ(first.claims[0].heads, 1);
  EXPECT_TRUE(first.claims[0].holds && first.claims[1].holds);
  const SeedValues& gain = first.claims[2].values;
  for (std::size_t s = 0; s < 2; ++s) {
    EXPECT_DOUBLE_EQ(*gain[s], *first.claims[1].values[s] - *first.claims[0].values[s]);
  }
  EXPECT_FALSE(first.claims[2].holds);
  EXPECT_FALSE(first.claims[3].values[0].has_value());  // never half right in 4 steps
  EXPECT_EQ(first.claims[4].values[0], 1);
  EXPECT_FALSE(first.holds());
  EXPECT_EQ(verdict(first), "tiny: 3 of 5 claims hold over 2 seeds.");

  const Reproduction second = reproduce(task, catalogue, options);
  EXPECT_EQ(second.made, 0);
  EXPECT_EQ(reproduction_json(second).dump(), reproduction_json(first).dump());
  // Numbers that were lost are measured again from the checkpoints.
  for (const auto& run : std::filesystem::directory_iterator(folder.path() / "tiny" / "two-layers-d_k-5")) {
    if (run.is_directory()) std::filesystem::remove(run.path() / "claims.json");
  }
  EXPECT_EQ(reproduction_json(reproduce(task, catalogue, options)).dump(), reproduction_json(first).dump());
}

TEST(Reproduce, TheSettingChangesTheTasksOwnTraining) {
  const Claiming task({});
  const RunConfig own = config_of(task, {}, 3, 7);
  EXPECT_EQ(own.recipe.steps, 4);
  EXPECT_EQ(own.needs.layers, 1);
  EXPECT_EQ(own.seed, 7U);
  const RunConfig other =
      config_of(task, {.name = "x", .steps = 9, .layers = 2, .head_size = 5, .smeared_keys = true}, 3, 7);
  EXPECT_EQ(other.recipe.steps, 9);
  EXPECT_EQ(other.needs.layers, 2);
  EXPECT_EQ(other.needs.head_size, 5);
  EXPECT_TRUE(other.needs.smeared_keys);
  const RunConfig pooled = config_of(task, {.name = "y", .layers = 2, .pooled = true}, 3, 7);
  EXPECT_TRUE(pooled.needs.pooled);
  EXPECT_EQ(pooled.needs.layer_heads, (std::vector<std::int64_t>{0, 0}));
  EXPECT_EQ(pooled.needs.head_size, own.needs.each_head());
}

TEST(Reproduce, RefusesWhatCannotBeTested) {
  const TemporaryFolder folder;
  const ReproduceOptions options{.seeds = 1, .folder = folder.path() / "tiny", .workers = 1};
  const auto error_with = [&](const std::vector<Claim>& claims) {
    const Claiming task(claims);
    const Catalogue catalogue = catalogue_of(task);
    return error_of([&] { reproduce(task, catalogue, options); });
  };
  EXPECT_EQ(error_with({}), "reproduce: tiny makes no claims");
  EXPECT_EQ(error_with({{.says = "x", .heads = {5}}}),
            "attention: d_model 12 is not a multiple of heads 5; give d_k to have it free");
  EXPECT_EQ(error_with({{.says = "x", .measure = Measure::mass, .heads = {3}, .target = 1}}),
            "claim: target 1 of x: tiny has 1");
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "tiny" / "results.json"));
}

// Against what the laboratory says of the same model.
TEST(Measuring, AgreesWithAnalysisAndKnockout) {
  const RolesTask task;
  Needs needs = task.needs();
  needs.heads = 2;
  const auto model = build_model(needs);
  initialise(*model, 1);
  Measuring measure(*model, task, 0, .25, {});
  const HeadAnalysis analysis = analyse_heads(*model, task, 0);
  const KnockoutMatrix knockout = knockout_matrix(*model, task, 0);
  const auto value = [&](Claim claim) { return *measure(claim); };
  EXPECT_EQ(value({.says = "", .measure = Measure::accuracy}), .25);
  EXPECT_EQ(value({.says = "", .measure = Measure::position}), knockout.intact.position);
  EXPECT_EQ(value({.says = "", .measure = Measure::cover}), static_cast<double>(analysis.cover));
  EXPECT_EQ(value({.says = "", .measure = Measure::relation, .target = 2}),
            analysis.targets[2].best_relation);
  EXPECT_EQ(value({.says = "", .measure = Measure::relation_above_offset, .target = 2}),
            analysis.targets[2].best_relation - analysis.targets[2].baseline);
  const auto mass = [&](std::size_t head, std::size_t target) {
    return analysis.heads[head].targets[target].mass;
  };
  EXPECT_EQ(value({.says = "", .measure = Measure::mass, .target = 0}), std::max(mass(0, 0), mass(1, 0)));
  EXPECT_EQ(value({.says = "", .measure = Measure::mass, .target = 0, .other = 1}),
            std::max(mass(0, 0) + mass(0, 1), mass(1, 0) + mass(1, 1)));
  EXPECT_EQ(value({.says = "", .measure = Measure::worst_head}),
            std::max(knockout.heads[0].accuracy, knockout.heads[1].accuracy));
  EXPECT_EQ(value({.says = "", .measure = Measure::worst_head, .answer = 1}),
            std::max(knockout.heads[0].readouts[1], knockout.heads[1].readouts[1]));
  const std::vector<HeadId> both{{0, 0}, {0, 1}};
  const Answers none = answers_without(*model, task, 0, both);
  EXPECT_EQ(value({.says = "", .measure = Measure::accuracy_lost}), knockout.intact.pooled - none.pooled);
  EXPECT_EQ(value({.says = "", .measure = Measure::without_set, .answer = 3, .threshold = 0}),
            none.readouts[3]);
  EXPECT_EQ(value({.says = "", .measure = Measure::without_set, .threshold = .99}), knockout.intact.pooled);
}

TEST(ReproductionText, SaysWhatHolds) {
  Reproduction result{.task = "offsets", .seeds = 2, .runs = 4};
  result.claims.push_back(
      judge({.says = "accuracy", .heads = {1}, .lower = .15, .upper = .26}, 1, {.2, .21}));
  result.claims.push_back(judge({.says = "cover",
                                 .measure = Measure::cover,
                                 .heads = {8},
                                 .lower = 5,
                                 .seeds = .8,
                                 .setting = {.name = "d_k 4"}},
                                8, {8, 2}));
  EXPECT_EQ(reproduction_text(result), R"(offsets: 4 runs
──────────────────────────────────────────────────────────────────────────────────────
 claim           heads        measured   range                         seeds
──────────────────────────────────────────────────────────────────────────────────────
 accuracy            1   0.205 ± 0.064   0.15 to 0.26                  2 of 2   holds
──────────────────────────────────────────────────────────────────────────────────────
 cover (d_k 4)       8     5.0 ± 38.1    at least 5.0, 80 % of seeds   1 of 2   FAILS
──────────────────────────────────────────────────────────────────────────────────────
measured: mean and 95 % t interval over seeds; the mean must be in the range, or, where it says so,
that many seeds by themselves. seeds: how many are in the range by themselves.
offsets: 1 of 2 claims hold over 2 seeds.
)");
}

}  // namespace
}  // namespace headlab
