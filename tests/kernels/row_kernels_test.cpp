// The kernels that work along rows: f32 against f64 (itself checked by goldens and gradcheck) for every
// length of a broken last vector, and a checksum that every instruction set, compiler and number of threads
// meets.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include "framework/core/parallel.h"
#include "framework/core/random.h"
#include "framework/kernels/gather.h"
#include "framework/kernels/losses.h"
#include "framework/kernels/norms.h"
#include "framework/kernels/optimise.h"
#include "framework/kernels/rows.h"

namespace headlab::kernels {
namespace {

template <class T>
std::vector<T> normals(std::int64_t n, std::uint64_t seed) {
  std::vector<T> x(static_cast<std::size_t>(n));
  Random random(seed, Stream::evaluation);
  for (T& v : x) v = static_cast<T>(static_cast<float>(random.normal()));
  return x;
}

// All kernels on [outer, n, inner] numbers, one output after the other.
template <class T>
std::vector<T> run(Axis axis, bool accumulate) {
  const std::int64_t size = axis.outer * axis.n * axis.inner;
  const std::int64_t rows = axis.outer * axis.inner;
  const std::vector<T> x = normals<T>(size, 1), dy = normals<T>(size, 2), start = normals<T>(size, 3);
  std::vector<T> all;
  const auto output = [&](std::int64_t n, const auto& kernel) {
    std::vector<T> out(start.begin(), start.begin() + n);
    kernel(out.data());
    all.insert(all.end(), out.begin(), out.end());
    return out;
  };
  const std::vector<T> y = output(size, [&](T* to) { softmax(x.data(), to, axis); });
  output(size, [&](T* to) { softmax_backward(y.data(), dy.data(), to, axis, accumulate); });
  const std::vector<T> logs = output(size, [&](T* to) { log_softmax(x.data(), to, axis); });
  output(size, [&](T* to) { log_softmax_backward(logs.data(), dy.data(), to, axis, accumulate); });
  output(axis.n, [&](T* to) { column_sums(x.data(), rows, axis.n, to, accumulate); });

  const Rows shape{rows, axis.n};
  const auto row = [&] { return std::vector<T>(static_cast<std::size_t>(rows)); };
  for (const Norm kind : {Norm::layer, Norm::rms}) {
    std::vector<T> mean = row(), r = row();
    output(size, [&](T* to) {
      norm(kind, x.data(), dy.data(), start.data(), static_cast<T>(1e-5), to, mean.data(), r.data(), shape);
    });
    const std::int64_t chunks = (rows + chunk_rows(rows) - 1) / chunk_rows(rows);
    std::vector<T> gains(static_cast<std::size_t>(chunks * axis.n)), biases = gains;
    output(size, [&](T* to) {
      norm_backward(kind, x.data(), dy.data(), mean.data(), r.data(), start.data(),
                    {to, accumulate, gains.data(), biases.data()}, shape);
    });
    all.insert(all.end(), gains.begin(), gains.end());
    all.insert(all.end(), biases.begin(), biases.end());
  }

  std::vector<std::int64_t> targets(static_cast<std::size_t>(rows));
  for (std::int64_t i = 0; i < rows; ++i)
    targets[static_cast<std::size_t>(i)] = i % 3 == 2 ? -1 : i * 7 % axis.n;
  const Scores scores{rows, axis.n, targets.data(), -1, 0.1};
  std::vector<T> loss = row(), top = row(), log_sum = row();
  cross_entropy(x.data(), scores, loss.data(), top.data(), log_sum.data());
  all.insert(all.end(), loss.begin(), loss.end());
  output(size, [&](T* to) {
    cross_entropy_backward(x.data(), scores, top.data(), log_sum.data(), T{0.25}, to, accumulate);
  });
  output(size, [&](T* to) { scaled_difference(x.data(), dy.data(), T{0.5}, to, size, accumulate); });
  all.push_back(static_cast<T>(squared_distance(x.data(), dy.data(), size)));

  std::vector<std::int64_t> ids(static_cast<std::size_t>(rows));
  for (std::int64_t i = 0; i < rows; ++i) ids[static_cast<std::size_t>(i)] = i * i % rows;
  output(size, [&](T* to) { gather_rows(x.data(), ids.data(), rows, axis.n, to); });
  output(size, [&](T* to) { scatter_add_rows(x.data(), ids.data(), rows, axis.n, to, rows, accumulate); });

  std::vector<T> w = x, m = start, v = normals<T>(size, 4);
  for (T& value : v) value *= value;
  adamw(w.data(), dy.data(), m.data(), v.data(), size, {0.9, 0.99, 1e-6, 0.999, 0.02, 1.5});
  sgd(w.data(), dy.data(), m.data(), size, {0.01, 0.9, true, 0.999});
  sgd(w.data(), dy.data(), nullptr, size, {0.01});
  scale(v.data(), size, {.factor = 0.3});
  for (const auto& changed : {w, m, v}) all.insert(all.end(), changed.begin(), changed.end());
  all.push_back(static_cast<T>(sum_of_squares(x.data(), size, 1)));
  return all;
}

void compare(Axis axis, bool accumulate) {
  const std::vector<float> got = run<float>(axis, accumulate);
  const std::vector<double> want = run<double>(axis, accumulate);
  ASSERT_EQ(got.size(), want.size());
  double worst = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    worst =
        std::max(worst, std::abs(static_cast<double>(got[i]) - want[i]) / std::max(1.0, std::abs(want[i])));
  }
  EXPECT_LT(worst, 5e-5) << axis.outer << " x " << axis.n << " x " << axis.inner;
}

TEST(RowKernels, AgreeWithTheirScalarFormForEveryLength) {
  for (std::int64_t n = 3; n <= 37; ++n) compare({5, n, 1}, n % 2 == 0);
  for (std::int64_t inner = 2; inner <= 19; ++inner) compare({3, 7, inner}, inner % 2 == 0);
  compare({2, 1031, 1}, true);
  compare({2, 2053, 1}, false);
  compare({71, 3, 1}, true);
  compare({1, 3, 2503}, false);
}

std::uint64_t checksum() {
  std::uint64_t sum = 0xCBF29CE484222325U;
  for (const Axis axis : {Axis{5, 3, 1}, Axis{5, 16, 1}, Axis{71, 53, 1}, Axis{3, 7, 19}, Axis{2, 2053, 1}}) {
    for (const bool accumulate : {false, true}) {
      for (const float x : run<float>(axis, accumulate)) {
        sum = (sum ^ std::bit_cast<std::uint32_t>(x)) * 0x100000001B3U;
      }
    }
  }
  return sum;
}

TEST(RowKernels, TheSameBitsEverywhere) {
  for (const int count : {1, 2, 3, 4, 8}) {
    set_threads(count);
    EXPECT_EQ(checksum(), 16300118761570894121U) << count << " threads";
  }
  set_threads(0);
}

}  // namespace
}  // namespace headlab::kernels
