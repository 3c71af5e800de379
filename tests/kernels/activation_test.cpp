#include "framework/kernels/activation.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

namespace headlab::kernels {
namespace {

// Numbers of every size and sign, the ends of the range and NaN among them.
template <class T>
std::vector<T> numbers_of_every_size() {
  std::vector<T> list{0, -T{0}, 40, -40, std::nextafter(T{40}, T{41}), std::nextafter(T{-40}, T{-41})};
  for (int exponent = -126; exponent <= 127; ++exponent) {
    for (const double mantissa : {1.0, 1.3, 1.99}) {
      list.push_back(static_cast<T>(std::ldexp(mantissa, exponent)));
      list.push_back(-list.back());
    }
  }
  for (int i = -4999; i <= 4999; ++i) list.push_back(static_cast<T>(i) * static_cast<T>(0.01));
  for (const double end : {std::numeric_limits<double>::infinity(), std::nan("")}) {
    list.push_back(static_cast<T>(end));
    list.push_back(-list.back());
  }
  return list;
}

template <class T>
void expect_same(const std::vector<T>& got, const std::vector<T>& want, const std::vector<T>& x) {
  for (std::size_t i = 0; i < want.size(); ++i) {
    if (std::isnan(want[i]) && std::isnan(got[i])) continue;
    EXPECT_EQ(std::memcmp(&got[i], &want[i], sizeof(T)), 0) << x[i] << ": " << got[i] << ", not " << want[i];
  }
}

template <class Function, class T>
void expect_value_and_slope() {
  const std::vector<T> x = numbers_of_every_size<T>();
  const auto n = static_cast<std::int64_t>(x.size());
  std::vector<T> value(x.size()), slope(x.size());
  const std::vector<T> one(x.size(), 1);
  apply<Function>(x.data(), value.data(), n);
  apply_backward<Function>(x.data(), one.data(), slope.data(), n, false);
  std::vector<T> y = x, slopes(x.size());
  activate<Function>(y.data(), slopes.data(), {1, n, n});
  expect_same(y, value, x);
  expect_same(slopes, slope, x);
  y = x;
  activate<Function>(y.data(), static_cast<T*>(nullptr), {1, n, n});
  expect_same(y, value, x);
}
TEST(Activation, ValueAndSlopeAreThoseOfTheFunctionByItself) {
  expect_value_and_slope<Gelu, float>();
  expect_value_and_slope<Gelu, double>();
  expect_value_and_slope<GeluExact, float>();
  expect_value_and_slope<GeluExact, double>();
}

template <class T>
void expect_only_the_window(Window window) {
  const auto size = static_cast<std::size_t>(window.rows * window.stride);
  std::vector<T> x(size), factor(size);
  for (std::size_t i = 0; i < size; ++i) {
    x[i] = static_cast<T>(i % 13) - 6;
    factor[i] = static_cast<T>(i % 7) - 3;
  }
  std::vector<T> product = x, y = x, slope(size, 99);
  multiply(product.data(), factor.data(), window);
  activate<Gelu>(y.data(), slope.data(), window);
  for (std::size_t i = 0; i < size; ++i) {
    const bool inside = static_cast<std::int64_t>(i) % window.stride < window.columns;
    EXPECT_EQ(product[i], inside ? x[i] * factor[i] : x[i]) << i;
    EXPECT_EQ(slope[i] == 99, !inside) << i;
    if (!inside) {
      EXPECT_EQ(y[i], x[i]) << i;
    }
  }
}
TEST(Activation, OnlyTheWindowChanges) {
  for (const Window window : {Window{0, 5, 7}, Window{3, 0, 7}, Window{1, 1, 1}, Window{5, 16, 17},
                              Window{3, 37, 41}, Window{2, 53, 53}}) {
    expect_only_the_window<float>(window);
    expect_only_the_window<double>(window);
  }
}

}  // namespace
}  // namespace headlab::kernels
