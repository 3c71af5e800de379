#include "framework/kernels/finite.h"

#include <limits>
#include <utility>

namespace headlab::kernels {
namespace {

template <class T>
void check_type() {
  std::vector<T> x(3 * 23, std::numeric_limits<T>::max());
  x[5] = std::numeric_limits<T>::denorm_min();
  x[6] = std::numeric_limits<T>::lowest();
  EXPECT_TRUE(all_finite(x.data(), 3, 23, 23));
  EXPECT_TRUE(all_finite(x.data(), 0, 23, 23));
  EXPECT_TRUE(all_finite(x.data(), 3, 0, 23));
  for (const T bad : {std::numeric_limits<T>::infinity(), -std::numeric_limits<T>::infinity(),
                      std::numeric_limits<T>::quiet_NaN()}) {
    for (std::size_t at = 0; at < x.size(); ++at) {
      const T before = std::exchange(x[at], bad);
      EXPECT_FALSE(all_finite(x.data(), 3, 23, 23)) << at;
      // Only the first 19 columns are looked at.
      EXPECT_EQ(all_finite(x.data(), 3, 19, 23), at % 23 >= 19) << at;
      x[at] = before;
    }
  }
}

TEST(AllFinite, FindsInfinityAndNaNAnywhere) {
  check_type<float>();
  check_type<double>();
}

}  // namespace
}  // namespace headlab::kernels
