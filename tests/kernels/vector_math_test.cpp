#include "framework/kernels/vector_math.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include <gtest/gtest.h>

#include "framework/core/parallel.h"

namespace headlab::kernels {
namespace {

constexpr float nan = std::numeric_limits<float>::quiet_NaN();
constexpr std::uint32_t stride = 4099;  // a prime: over all bit patterns it visits every exponent and sign

using Vector = f32x16 (*)(f32x16);
using Exact = double (*)(double);
f32x16 vector_exp(f32x16 x) { return exp(x); }
f32x16 vector_log(f32x16 x) { return log(x); }
f32x16 vector_log1p(f32x16 x) { return log1p(x); }
f32x16 vector_tanh(f32x16 x) { return tanh(x); }
f32x16 vector_erf(f32x16 x) { return erf(x); }

float lane(f32x16 x, int i) {
  std::array<float, 16> out{};
  store(out.data(), x);
  return out[i];
}

/// Distance in units of the last place of the f32 nearest to `exact`.
double ulps(float got, double exact) {
  const auto nearest = static_cast<float>(exact);
  if (std::isnan(exact) || std::isnan(got)) return std::isnan(exact) && std::isnan(got) ? 0 : 1e9;
  if (std::isinf(nearest) || std::isinf(got)) return nearest == got ? 0 : 1e9;
  const float size = std::max(std::fabs(nearest), std::numeric_limits<float>::min());
  const double unit = static_cast<double>(std::nextafter(size, infinity)) - static_cast<double>(size);
  return std::fabs(static_cast<double>(got) - exact) / unit;
}

struct Scan {
  double worst = 0;
  float at = 0;
  std::uint64_t checksum = 0xCBF29CE484222325U;
};

/// All bit patterns from `first` on in steps of `step`, sixteen at a time.
Scan scan(Vector ours, Exact exact, std::uint32_t first, std::uint32_t last, std::uint32_t step) {
  Scan found;
  std::array<float, 16> in{}, out{};
  std::uint64_t bits = first;
  while (bits <= last) {
    for (float& x : in) {
      x = std::bit_cast<float>(static_cast<std::uint32_t>(std::min<std::uint64_t>(bits, last)));
      bits += step;
    }
    store(out.data(), ours(load(in.data())));
    for (int i = 0; i < 16; ++i) {
      const auto word = std::isnan(out[i]) ? 0x7FC00000U : std::bit_cast<std::uint32_t>(out[i]);
      found.checksum = (found.checksum ^ word) * 0x100000001B3U;
      double wanted = exact(static_cast<double>(in[i]));
      // The promise for results below the normal range is 0.
      if (out[i] == 0.0F && std::fabs(wanted) < 1.1755e-38) wanted = 0;
      const double error = ulps(out[i], wanted);
      if (!(error <= found.worst)) found.worst = error, found.at = in[i];
    }
  }
  return found;
}

struct Case {
  const char* name;
  Vector ours;
  Exact exact;
  float dense_low, dense_high;  // where the interesting part lies
  std::uint64_t checksum;       // the same on every instruction set and compiler
};
const Case cases[] = {
    {"exp", vector_exp, std::exp, 0.001F, 89.0F, 15156541065424278274U},
    {"log", vector_log, std::log, 0.5F, 2.0F, 1766804784058353358U},
    {"log1p", vector_log1p, std::log1p, 1e-4F, 4.0F, 8298794807909223747U},
    {"tanh", vector_tanh, std::tanh, 0.01F, 10.0F, 18154213701759412948U},
    {"erf", vector_erf, std::erf, 0.01F, 4.0F, 15637980732052672781U},
};

TEST(VectorMath, IsWithinTwoUlpsOverAllNumbers) {
  for (const Case& c : cases) {
    const Scan found = scan(c.ours, c.exact, 0, 0xFFFFFFFFU, stride);

    EXPECT_LE(found.worst, 2.0) << c.name << " of " << found.at;
  }
}

TEST(VectorMath, IsWithinTwoUlpsWhereItBends) {
  for (const Case& c : cases) {
    for (const std::uint32_t sign : {0U, 0x80000000U}) {
      const Scan found = scan(c.ours, c.exact, std::bit_cast<std::uint32_t>(c.dense_low) | sign,
                              std::bit_cast<std::uint32_t>(c.dense_high) | sign, 131);

      EXPECT_LE(found.worst, 2.0) << c.name << " of " << found.at;
    }
  }
}

TEST(VectorMath, GivesTheSameBitsOnEveryInstructionSet) {
  for (const Case& c : cases) {
    EXPECT_EQ(scan(c.ours, c.exact, 0, 0xFFFFFFFFU, stride).checksum, c.checksum) << c.name;
  }
}

TEST(VectorMath, IsRightAtTheEnds) {
  const auto at = [](Vector f, float x) { return lane(f(broadcast(x)), 9); };
  EXPECT_EQ(at(vector_exp, 0.0F), 1.0F);
  EXPECT_EQ(at(vector_exp, infinity), infinity);
  EXPECT_EQ(at(vector_exp, minus_infinity), 0.0F);
  EXPECT_EQ(at(vector_exp, 88.8F), infinity);
  EXPECT_LT(at(vector_exp, 88.72F), infinity);
  EXPECT_EQ(at(vector_exp, -1e9F), 0.0F);
  EXPECT_EQ(at(vector_log, 1.0F), 0.0F);
  EXPECT_EQ(at(vector_log, 0.0F), minus_infinity);
  EXPECT_EQ(at(vector_log, -0.0F), minus_infinity);
  EXPECT_EQ(at(vector_log, infinity), infinity);
  EXPECT_TRUE(std::isnan(at(vector_log, -1.0F)));
  EXPECT_TRUE(std::isnan(at(vector_log, minus_infinity)));
  EXPECT_EQ(at(vector_log1p, 0.0F), 0.0F);
  EXPECT_EQ(at(vector_log1p, -1.0F), minus_infinity);
  EXPECT_EQ(at(vector_log1p, infinity), infinity);
  EXPECT_TRUE(std::isnan(at(vector_log1p, -1.5F)));
  for (const Vector f : {vector_tanh, vector_erf}) {
    EXPECT_EQ(at(f, infinity), 1.0F);
    EXPECT_EQ(at(f, minus_infinity), -1.0F);
    EXPECT_EQ(at(f, 0.0F), 0.0F);
    EXPECT_TRUE(std::signbit(at(f, -0.0F)));
    EXPECT_EQ(at(f, 1e-30F), f == Vector{vector_tanh} ? 1e-30F : static_cast<float>(std::erf(1e-30)));
  }
  for (const Case& c : cases) EXPECT_TRUE(std::isnan(at(c.ours, nan))) << c.name;
}

TEST(VectorMath, DoesNotDependOnFlushToZero) {
  for (const float x : {-87.3F, -87.34F, -90.0F, -103.0F, 1e-40F, 0.5F, 90.0F}) {
    const float exp_plain = lane(exp(broadcast(x)), 0), log_plain = lane(log(broadcast(x)), 0);
    const FlushToZero flush;
    EXPECT_EQ(lane(exp(broadcast(x)), 0), exp_plain) << x;
    EXPECT_TRUE(lane(log(broadcast(x)), 0) == log_plain || std::isnan(log_plain)) << x;
  }
}

}  // namespace
}  // namespace headlab::kernels
