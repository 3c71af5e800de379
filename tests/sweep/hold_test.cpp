#include "framework/sweep/hold.h"

#include <gtest/gtest.h>

#include "framework/data/induction.h"
#include "framework/data/offsets.h"
#include "models/build.h"
#include "tests/support/errors.h"

namespace headlab {
namespace {

std::int64_t built(const Needs& needs) { return build_model(needs)->parameter_count(); }

TEST(Hold, DModelIsSharedByTheHeads) {
  for (const std::int64_t heads : {1, 4, 16, 64}) {
    const Needs needs = needs_at(OffsetsTask().needs(), Hold::d_model, heads);
    EXPECT_EQ(needs.heads, heads);
    EXPECT_EQ(needs.each_head(), 64 / heads);
    EXPECT_EQ(built(needs), 36352);
  }
}

// Equal parameters by another size of heads: two heads of 8 numbers and one of 16, four of 8 and two of 16.
TEST(Hold, DHeadMakesMoreHeadsMoreParameters) {
  Needs base = OffsetsTask().needs();
  base.head_size = 8;
  const auto parameters = [&](std::int64_t heads) { return built(needs_at(base, Hold::d_head, heads)); };
  EXPECT_EQ(parameters(1), 22016);
  EXPECT_EQ(parameters(2), 24064);
  EXPECT_EQ(parameters(4), 28160);
  EXPECT_EQ(parameters(8), 36352);
  base.head_size = 16;
  EXPECT_EQ(parameters(1), 24064);
  EXPECT_EQ(parameters(2), 28160);
  EXPECT_EQ(needs_at(base, Hold::d_head, 16).d_model, 64);
}

TEST(Hold, DHeadIsThatOfTheTaskUnlessGiven) {
  Needs base = OffsetsTask().needs();
  base.heads = 8;
  EXPECT_EQ(needs_at(base, Hold::d_head, 3).each_head(), 8);
  // Where a head has its usual size it is the usual model, so that runs are shared.
  EXPECT_EQ(needs_at(base, Hold::d_head, 8).head_size, 0);
  EXPECT_EQ(needs_at(base, Hold::parameters, 8).head_size, 0);
  EXPECT_EQ(needs_at(base, Hold::parameters, 8).d_model, 64);
}

TEST(Hold, ParametersStayByAnotherWidth) {
  for (Needs base : {OffsetsTask().needs(), InductionTask().needs()}) {
    base.heads = 8;
    base.mlp = 128;
    const auto wanted = static_cast<double>(built(base));
    std::int64_t before = 1'000'000;
    for (const std::int64_t heads : {1, 2, 5, 8, 16, 32}) {
      const Needs needs = needs_at(base, Hold::parameters, heads);
      const auto got = static_cast<double>(built(needs));
      EXPECT_EQ(needs.each_head(), 8);
      EXPECT_NEAR(got, wanted, 0.02 * wanted) << heads;
      EXPECT_LT(needs.d_model, before);
      before = needs.d_model;
      // The nearest there is.
      for (const std::int64_t other : {needs.d_model - 1, needs.d_model + 1}) {
        Needs neighbour = needs;
        neighbour.head_size = 8;
        set_d_model(neighbour, other);
        EXPECT_GE(std::abs(neighbour.parameters() - wanted), std::abs(got - wanted)) << heads;
      }
    }
  }
}

TEST(Hold, RefusesWhatCannotBeHeld) {
  Needs base = OffsetsTask().needs();
  base.heads = 8;
  EXPECT_EQ(error_of([&] { needs_at(base, Hold::d_model, 5); }),
            "ablation: d_model 64 is not a multiple of 5 heads");
  EXPECT_EQ(error_of([&] { needs_at(base, Hold::parameters, 1024); }),
            "ablation: 1024 heads of 8 numbers cannot have the 36352 parameters of 8 heads: the nearest is "
            "33332, with d_model 1");
  base.head_size = 7;
  EXPECT_EQ(error_of([&] { needs_at(base, Hold::d_model, 4); }),
            "ablation: heads of 7 numbers cannot share d_model 64 at every head count");
  base.head_size = 0;
  base.heads = 5;
  EXPECT_EQ(error_of([&] { needs_at(base, Hold::d_head, 4); }),
            "ablation: d_model 64 is not a multiple of 5 heads, so a head has no size to be held");
}

TEST(Hold, HasNames) {
  for (const Hold hold : {Hold::d_model, Hold::d_head, Hold::parameters}) {
    EXPECT_EQ(hold_named(name_of(hold)), hold);
  }
  EXPECT_FALSE(hold_named("width"));
}

}  // namespace
}  // namespace headlab
