#include "tests/support/goldens.h"

#include <filesystem>

namespace headlab {
namespace {

TEST(Goldens, EveryFileLoads) {
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(HEADLAB_GOLDENS)) {
    if (entry.path().extension() != ".safetensors") continue;
    const Golden golden(entry.path().stem().string());
    EXPECT_FALSE(golden.arrays().empty()) << entry.path();
    EXPECT_TRUE(golden.cases().is_array()) << entry.path();
    ++files;
  }
  EXPECT_GE(files, 6);
}

TEST(Goldens, CasesNameTheirArrays) {
  const Golden golden("ops");
  EXPECT_EQ(golden.cases().size(), 34U);
  for (const auto& c : golden.cases()) {
    const std::string name = c.at("name");
    EXPECT_TRUE(golden.has(name + ".out")) << name;
    for (const std::string input : c.at("inputs")) EXPECT_TRUE(golden.has(name + "." + input)) << name;
  }
  EXPECT_EQ(golden.find_case("softmax_axis1").at("axis"), 1);
  EXPECT_EQ(golden("linear.w").shape(), (Shape{11, 7}));
  EXPECT_EQ(golden("linear.w", DType::f32).dtype(), DType::f32);
}

TEST(Goldens, CloseUsesTheLargestWantedValue) {
  const Array want = Array::of<double>({3}, {0, 100, -200});
  EXPECT_TRUE(close(Array::of<double>({3}, {1.9e-3, 100, -200}), want, 1e-5));
  EXPECT_FALSE(close(Array::of<double>({3}, {2.1e-3, 100, -200}), want, 1e-5));
  const Array small = Array::of<float>({2}, {0, 0.5});
  EXPECT_TRUE(close(Array::of<double>({2}, {0.9e-5, 0.5}), small, 1e-5));
  EXPECT_FALSE(close(Array::of<double>({2}, {1.1e-5, 0.5}), small, 1e-5));
}

TEST(Goldens, CloseKnowsNaNInfinityAndShape) {
  const Array nan = Array::of<double>({1}, {std::nan("")});
  const Array one = Array::of<double>({1}, {1});
  const Array infinite = Array::of<double>({1}, {HUGE_VAL});
  EXPECT_TRUE(close(nan, nan, 1));
  EXPECT_FALSE(close(nan, one, 1e9));
  EXPECT_FALSE(close(one, nan, 1e9));
  EXPECT_TRUE(close(infinite, infinite, 0));
  EXPECT_FALSE(close(one, infinite, 1e9));
  EXPECT_FALSE(close(infinite, one, 1e9));
  EXPECT_FALSE(close(one.reshape({1, 1}), one, 1));
  EXPECT_FALSE(close(Array(), one, 1));
}

TEST(Goldens, CloseSaysWhere) {
  const auto result =
      close(Array::of<double>({2, 2}, {1, 2, 3.5, 4}), Array::of<double>({2, 2}, {1, 2, 3, 4}), 1e-10, "d_x");
  EXPECT_STREQ(result.message(),
               "d_x: 1 of 4 elements of shape [2, 2] differ, worst at 2: got 3.5, wanted 3, difference 0.5, "
               "allowed 4e-10");
}

}  // namespace
}  // namespace headlab
