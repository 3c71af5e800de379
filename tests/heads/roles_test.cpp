// Roles of heads whose weights were set by hand, and of heads that nobody trained.
#include "framework/heads/roles.h"

#include <gtest/gtest.h>

#include "framework/core/parallel.h"
#include "framework/core/random.h"
#include "models/build.h"
#include "tests/heads/planted.h"
#include "tests/heads/support.h"
#include "tests/support/errors.h"

namespace headlab {
namespace {

using Kind = RoleScore::Kind;

Needs needs_of(std::int64_t layers, std::int64_t heads) {
  Needs needs = PlantTask().needs();
  needs.layers = layers;
  needs.heads = heads;
  return needs;
}

const UntrainedHeads& untrained() {
  static const UntrainedHeads heads = untrained_heads(build_model, needs_of(2, 14), PlantTask(), 7);
  return heads;
}

RoleAnalysis roles_of(Model& model, const UntrainedHeads& null) {
  const PlantTask task;
  return analyse_roles(model, task, 3, analyse_heads(model, task, 3), null);
}

bool has(const HeadRoles& head, Kind kind) {
  for (const RoleScore* role : head.held()) {
    if (role->kind == kind) return true;
  }
  return false;
}

TEST(Roles, EveryPlantedHeadIsFoundAmongRandomOnes) {
  const std::vector<std::pair<Plant, Kind>> plan{
      {Plant::previous, Kind::previous},      {Plant::self, Kind::self},
      {Plant::back3, Kind::offset},           {Plant::sink, Kind::sink},
      {Plant::fourth, Kind::fixed_key},       {Plant::delimiter, Kind::delimiter},
      {Plant::duplicate, Kind::duplicate},    {Plant::partner, Kind::relation},
      {Plant::even, Kind::uniform},           {Plant::copy, Kind::copying},
      {Plant::anti_copy, Kind::anti_copying}, {Plant::carry, Kind::previous}};
  PlantedDecoder planted(needs_of(2, 14), 11);
  for (std::size_t h = 0; h < plan.size(); ++h) planted.plant(0, static_cast<std::int64_t>(h), plan[h].first);
  planted.plant(1, 5, Plant::induct);
  const RoleAnalysis a = roles_of(planted.model(), untrained());
  ASSERT_EQ(a.heads.size(), 28U);
  for (std::size_t h = 0; h < plan.size(); ++h) {
    EXPECT_TRUE(has(a.heads[h], plan[h].second)) << h;
    ASSERT_TRUE(a.heads[h].main) << h;
    const Kind main = a.heads[h].scores[*a.heads[h].main].kind;
    const bool writes = plan[h].second == Kind::copying || plan[h].second == Kind::anti_copying;
    EXPECT_EQ(main, writes ? Kind::uniform : plan[h].second) << h;  // where it looks goes first
  }
  EXPECT_EQ(a.heads[2].scores[*a.heads[2].main].name, "offset -3");
  EXPECT_EQ(a.heads[4].scores[*a.heads[4].main].name, "always key 4");
  EXPECT_EQ(a.heads[7].scores[*a.heads[7].main].name, "looks up partner");
  const HeadRoles& induct = a.heads[14 + 5];
  ASSERT_TRUE(induct.main);
  EXPECT_EQ(induct.scores[*induct.main].kind, Kind::induction);
  EXPECT_GT(*induct.prefix_matching, 0.8);
  EXPECT_GT(induct.scores[*induct.main].strength, 0.7);
  // Random heads beside them: at most one of 15 gets anything.
  EXPECT_LE(a.heads_with_role(), 14);
  EXPECT_GE(a.layers[0].coverage, 11);
  EXPECT_EQ(a.layers[0].heads_with_role, 12);
  EXPECT_GT(a.layers[0].redundancy, 0.8);
  EXPECT_GT(a.heads[0].specialisation, 0.9);
  // Only the carrying head writes what the inducing one looks for: K-composition.
  const auto strongest = std::max_element(
      a.compositions.begin(), a.compositions.end(),
      [](const Composition& x, const Composition& y) { return x.key->above < y.key->above; });
  EXPECT_EQ(strongest->from, (HeadId{0, 11}));
  EXPECT_EQ(strongest->to, (HeadId{1, 5}));
}

TEST(Roles, AHeadThatLooksAheadIsANextTokenHead) {
  Needs needs = needs_of(1, 3);
  needs.causal = false;
  PlantedDecoder planted(needs, 2);
  planted.plant(0, 1, Plant::next);
  const RoleAnalysis a = roles_of(planted.model(), untrained_heads(build_model, needs, PlantTask(), 7, 30));
  ASSERT_TRUE(a.heads[1].main);
  EXPECT_EQ(a.heads[1].scores[*a.heads[1].main].kind, Kind::next);
}

TEST(Roles, HaveTheSameBitsForAnyNumberOfThreads) {
  const Needs needs = needs_of(2, 3);
  const auto strengths = [&](int threads) {
    set_threads(threads);
    PlantedDecoder planted(needs, 2);
    planted.plant(0, 1, Plant::duplicate);
    const UntrainedHeads null = untrained_heads(build_model, needs, PlantTask(), 7, 60);
    std::vector<double> numbers;
    for (const HeadRoles& head : roles_of(planted.model(), null).heads) {
      for (const RoleScore& role : head.scores) {
        for (const double x : {role.score, role.null.median, role.null.threshold, role.strength})
          numbers.push_back(x);
      }
    }
    set_threads(0);
    return numbers;
  };
  EXPECT_EQ(strengths(1), strengths(3));
}

TEST(Roles, OfHeadsThatShowNeitherWeightsNorPatternAreAbsent) {
  const PlantTask task;
  PlantedModel model(task.needs(), {{-1, 0}, {0, 0, true}});
  const RoleAnalysis seen = roles_of(model, untrained());
  ASSERT_TRUE(seen.heads[0].main);
  EXPECT_EQ(seen.heads[0].scores[*seen.heads[0].main].kind, Kind::previous);
  EXPECT_TRUE(has(seen.heads[1], Kind::uniform));
  EXPECT_FALSE(seen.heads[0].weights);
  EXPECT_TRUE(seen.heads[0].low_rank);
  EXPECT_TRUE(seen.compositions.empty());
  EXPECT_NE(seen.no_copying, "");
  model.attn->shows_pattern = false;
  const RoleAnalysis shy = roles_of(model, untrained());
  EXPECT_FALSE(shy.heads[0].main);
  EXPECT_FALSE(shy.heads[0].prefix_matching);
  EXPECT_TRUE(has(shy.heads[1], Kind::uniform));  // telemetry is enough
}

}  // namespace
}  // namespace headlab
