#include "framework/heads/specialisation.h"

#include <gtest/gtest.h>

#include "tests/heads/support.h"
#include "tests/support/errors.h"

namespace headlab {
namespace {

// Three heads over two keys, one query that counts.
PatternDistances three_heads() {
  const Array pattern = Array::of<float>({1, 3, 2, 2}, {1, 0, 1, 0, /**/ 1, 0, 0, 1, /**/ 1, 0, .5F, .5F});
  PatternDistances distances;
  distances.add(PatternRows(pattern, Mask::causal(), Array()));
  return distances;
}

double h(double p) { return -p * std::log(p) - (1 - p) * std::log(1 - p); }

TEST(PatternDistances, AreTheRootOfTheSmoothedJensenShannonDivergence) {
  const PatternDistances d = three_heads();
  const double p = 0.9995;  // 0.999 · 1 + 0.001/2
  EXPECT_NEAR(d.between(0, 1), std::sqrt(h(0.5) - h(p)), 1e-12);
  EXPECT_NEAR(d.between(0, 2), std::sqrt(h((p + 0.5) / 2) - h(p) / 2 - h(0.5) / 2), 1e-12);
  EXPECT_EQ(d.between(0, 0), 0);
  EXPECT_EQ(d.between(1, 0), d.between(0, 1));
  EXPECT_LT(d.between(0, 1), std::sqrt(std::log(2)));
  EXPECT_NEAR(d.diversity(), (d.between(0, 1) + d.between(0, 2) + d.between(1, 2)) / 3, 1e-15);
}

TEST(PatternDistances, OfEqualHeadsAreZero) {
  Array pattern = Array::full({2, 2, 3, 3}, 0.25);
  PatternDistances d;
  d.add(PatternRows(pattern, Mask(), Array()));
  EXPECT_EQ(d.between(0, 1), 0);
  EXPECT_EQ(d.diversity(), 0);
}

TEST(PatternDistances, OfOneHeadAreNone) {
  PatternDistances d;
  EXPECT_EQ(d.diversity(), 0);
  d.add(PatternRows(one_hot({0, 1}), Mask::causal(), Array()));
  EXPECT_EQ(d.diversity(), 0);
  EXPECT_EQ(error_of([&] { d.between(0, 1); }), "PatternDistances: heads 0 and 1 of 1");
}

}  // namespace
}  // namespace headlab
