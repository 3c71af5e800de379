#include "framework/kernels/simd.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "framework/core/random.h"

namespace headlab::kernels {
namespace {

using Lanes = std::array<float, 16>;
constexpr float nan = std::numeric_limits<float>::quiet_NaN();

Lanes lanes_of(f32x16 x) {
  Lanes out{};
  store(out.data(), x);
  return out;
}
Lanes random_lanes(std::uint64_t index) {
  Random random(11, Stream::evaluation, index);
  Lanes out{};
  for (float& x : out) x = static_cast<float>(random.normal() * std::exp(3 * random.normal()));
  return out;
}
Lanes iota(float first) {
  Lanes out{};
  for (int i = 0; i < 16; ++i) out[i] = first + static_cast<float>(i);
  return out;
}

TEST(Simd, ArithmeticIsThatOfSingleLanes) {
  for (std::uint64_t trial = 0; trial < 97; ++trial) {
    const Lanes a = random_lanes(3 * trial), b = random_lanes(3 * trial + 1), c = random_lanes(3 * trial + 2);
    const f32x16 x = load(a.data()), y = load(b.data()), z = load(c.data());
    const Lanes sum = lanes_of(x + y), difference = lanes_of(x - y), product = lanes_of(x * y),
                ratio = lanes_of(x / y);
    const Lanes fused = lanes_of(fma(x, y, z)), minus = lanes_of(fms(x, y, z)),
                negative = lanes_of(fnma(x, y, z));
    const Lanes root = lanes_of(sqrt(abs(x))), opposite = lanes_of(-x),
                rounded = lanes_of(round_to_nearest(x));
    const Lanes larger = lanes_of(max(x, y)), smaller = lanes_of(min(x, y)),
                signed_x = lanes_of(copy_sign(x, y));
    const Lanes chosen = lanes_of(select(x < y, z, x)),
                back = lanes_of(to_float(to_int(x * broadcast(0.01F))));
    for (int i = 0; i < 16; ++i) {
      EXPECT_EQ(sum[i], a[i] + b[i]);
      EXPECT_EQ(difference[i], a[i] - b[i]);
      EXPECT_EQ(product[i], a[i] * b[i]);
      EXPECT_EQ(ratio[i], a[i] / b[i]);
      EXPECT_EQ(fused[i], std::fma(a[i], b[i], c[i]));
      EXPECT_EQ(minus[i], std::fma(a[i], b[i], -c[i]));
      EXPECT_EQ(negative[i], std::fma(-a[i], b[i], c[i]));
      EXPECT_EQ(root[i], std::sqrt(std::fabs(a[i])));
      EXPECT_EQ(opposite[i], -a[i]);
      EXPECT_EQ(rounded[i], std::nearbyint(a[i]));
      EXPECT_EQ(larger[i], a[i] < b[i] ? b[i] : a[i]);
      EXPECT_EQ(smaller[i], a[i] < b[i] ? a[i] : b[i]);
      EXPECT_EQ(signed_x[i], std::copysign(a[i], b[i]));
      EXPECT_EQ(chosen[i], a[i] < b[i] ? c[i] : a[i]);
      EXPECT_EQ(back[i], std::nearbyint(a[i] * 0.01F));
    }
  }
}

TEST(Simd, MaskedLoadsAndStoresTouchOnlyTheFirstLanes) {
  for (int count = -1; count <= 17; ++count) {
    const int kept = count < 0 ? 0 : count > 16 ? 16 : count;
    const std::vector<float> exact(static_cast<std::size_t>(kept),
                                   7.0F);  // address checkers see a read past it
    const Lanes loaded = lanes_of(load_masked(exact.data(), count, minus_infinity));
    Lanes target = iota(100);
    store_masked(target.data(), broadcast(-1.0F), count);
    for (int i = 0; i < 16; ++i) {
      EXPECT_EQ(loaded[i], i < kept ? 7.0F : minus_infinity);
      EXPECT_EQ(target[i], i < kept ? -1.0F : 100.0F + static_cast<float>(i));
    }
    EXPECT_EQ(bits_of(first_lanes(count)), (1U << kept) - 1U);
  }
}

TEST(Simd, SumsFoldEightFourTwoOne) {
  for (std::uint64_t trial = 0; trial < 97; ++trial) {
    const Lanes given = random_lanes(trial);
    Lanes x = given;
    for (int half = 8; half >= 1; half /= 2) {
      for (int i = 0; i < half; ++i) x[i] += x[i + half];
    }
    EXPECT_EQ(horizontal_sum(load(given.data())), x[0]);
  }
}

TEST(Simd, AMaskedTailSumsLikeZeros) {
  const Lanes given = random_lanes(5);
  for (int count = 0; count <= 16; ++count) {
    Lanes padded{};
    std::copy_n(given.begin(), count, padded.begin());
    EXPECT_EQ(horizontal_sum(load_masked(given.data(), count, 0.0F)), horizontal_sum(load(padded.data())));
  }
}

TEST(Simd, TheLargestLaneIsFoundWhereverItIs) {
  for (int at = 0; at < 16; ++at) {
    Lanes x = iota(-50);
    x[at] = 3.0F;
    EXPECT_EQ(horizontal_max(load(x.data())), 3.0F);
    x[at] = nan;
    EXPECT_TRUE(std::isnan(horizontal_max(load(x.data())))) << "NaN in lane " << at;
  }
  EXPECT_EQ(horizontal_max(broadcast(minus_infinity)), minus_infinity);
}

TEST(Simd, MaximaAndMinimaKeepNan) {
  for (const auto& [a, b] :
       {std::pair{nan, 1.0F}, std::pair{1.0F, nan}, std::pair{nan, nan}, std::pair{nan, infinity}}) {
    EXPECT_TRUE(std::isnan(lanes_of(max(broadcast(a), broadcast(b)))[3]));
    EXPECT_TRUE(std::isnan(lanes_of(min(broadcast(a), broadcast(b)))[11]));
  }
}

TEST(Simd, ComparisonsWithNanAreFalseExceptUnequal) {
  const f32x16 n = broadcast(nan), one = broadcast(1.0F);
  EXPECT_FALSE(any((n < one) | (n <= one) | (n > one) | (n >= one) | (n == one) | (n == n)));
  EXPECT_TRUE(all(n != n));
  EXPECT_TRUE(all(is_nan(n) & ~is_nan(one)));
  EXPECT_TRUE(all((one <= one) & (one >= one) & (one == one)));
  const Lanes x = iota(0);
  EXPECT_EQ(bits_of(load(x.data()) < broadcast(3.0F)), 7U);
  EXPECT_EQ(bits_of(load(x.data()) > broadcast(13.0F)), 0xC000U);
}

TEST(Simd, TransposesBlocksOfAnySizeWithoutReadingPastThem) {
  for (std::int64_t rows = 1; rows <= transpose_rows; ++rows) {
    for (const std::int64_t columns : {1, 2, 3, 4, 7, 16, 37}) {
      std::vector<float> from(static_cast<std::size_t>(rows * columns));
      for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<float>(i);
      // Rows of the result as short as they may be: each overwrites what the one before left past its end.
      std::vector<float> to(static_cast<std::size_t>(columns * rows + transpose_rows), -1.0F);
      transpose(from.data(), columns, rows, columns, to.data(), rows);
      for (std::int64_t i = 0; i < rows; ++i) {
        for (std::int64_t j = 0; j < columns; ++j) {
          ASSERT_EQ(to[j * rows + i], from[i * columns + j]) << rows << "x" << columns;
        }
      }
    }
  }
}

TEST(Simd, IntegerLanesShiftAndMask) {
  const i32x16 x = broadcast_int(-1000);
  std::array<std::int32_t, 16> out{};
  const auto lane = [&](i32x16 v) {
    store_int(out.data(), v);
    return out[13];
  };
  EXPECT_EQ(lane(shift_left<3>(x)), -8000);
  EXPECT_EQ(lane(shift_right_arithmetic<3>(x)), -125);
  EXPECT_EQ(lane(shift_right_logical<4>(x)), static_cast<std::int32_t>(0xFFFFFC18U >> 4U));
  EXPECT_EQ(lane((x & broadcast_int(0xFF)) | broadcast_int(0x100)), 0x118);
  EXPECT_EQ(lane(x ^ x), 0);
  EXPECT_EQ(lane(x + broadcast_int(1) - broadcast_int(2)), -1001);
  EXPECT_EQ(lane(to_int(broadcast(2.5F))), 2) << "ties go to even";
  EXPECT_EQ(lane(select(x < broadcast_int(0), broadcast_int(5), x)), 5);
  EXPECT_EQ(lane(load_int(std::array<std::int32_t, 16>{}.data())), 0);
  EXPECT_TRUE(all(x == x));
}

}  // namespace
}  // namespace headlab::kernels
