#include "framework/core/significance.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include <math.h>

#include "framework/core/check.h"

namespace headlab {

namespace {

/// std::lgamma writes the global signgam: two sweeps in two threads would race.
double log_gamma(double x) {
  int sign = 0;
  return ::lgamma_r(x, &sign);
}

/// 1 / (1 + d1/(1 + d2/(1 + …))), where for m = 1, 2, …
///   d_2m   = m (b - m) x / ((a + 2m - 1)(a + 2m)),
///   d_2m+1 = -(a + m)(a + b + m) x / ((a + 2m)(a + 2m + 1)), m = 0, 1, …
double beta_fraction(double x, double a, double b) {
  constexpr double tiny = 1e-300;
  constexpr double precision = std::numeric_limits<double>::epsilon();
  const auto away_from_zero = [](double v) { return std::abs(v) < tiny ? tiny : v; };
  double c = 1;
  double d = 1 / away_from_zero(1 - (a + b) * x / (a + 1));
  double fraction = d;
  // About sqrt(max(a, b)) terms are needed on the side of the mode that incomplete_beta chooses.
  const int most = 1000 + static_cast<int>(std::min(20 * std::sqrt(std::max(a, b)), 1e6));
  for (int i = 1; i <= most; ++i) {
    const double m = i;
    const double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
    d = 1 / away_from_zero(1 + even * d);
    c = away_from_zero(1 + even / c);
    fraction *= d * c;
    const double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
    d = 1 / away_from_zero(1 + odd * d);
    c = away_from_zero(1 + odd / c);
    fraction *= d * c;
    if (std::abs(d * c - 1) <= precision) break;
  }
  return fraction;
}

/// I_x(a, b) where y = 1 - x is given apart, so that neither loses digits.
double incomplete_beta(double x, double y, double a, double b) {
  if (x == 0 || y == 0) return x == 0 ? 0 : 1;
  const double front =
      std::exp(log_gamma(a + b) - log_gamma(a) - log_gamma(b) + a * std::log(x) + b * std::log(y));
  // The fraction converges fast for x below (a + 1)/(a + b + 2); else by I_x(a, b) = 1 - I_y(b, a).
  if (x < (a + 1) / (a + b + 2)) return front * beta_fraction(x, a, b) / a;
  return 1 - front * beta_fraction(y, b, a) / b;
}

/// All sums of ± the numbers, 2^n of them.
std::vector<double> signed_sums(std::span<const double> numbers) {
  std::vector<double> sums{0.0};
  for (const double number : numbers) {
    const std::size_t count = sums.size();
    sums.resize(2 * count);
    for (std::size_t i = 0; i < count; ++i) {
      sums[count + i] = sums[i] - number;
      sums[i] += number;
    }
  }
  return sums;
}

}  // namespace

double incomplete_beta(double x, double a, double b) {
  check(x >= 0 && x <= 1, "incomplete_beta", "x = {} is not in [0, 1]", x);
  check(a > 0 && b > 0 && std::isfinite(a) && std::isfinite(b), "incomplete_beta",
        "a = {}, b = {} are not positive and finite", a, b);
  return incomplete_beta(x, 1 - x, a, b);
}

double student_t_two_sided(double t, double df) {
  check(df > 0 && std::isfinite(df), "student_t", "df = {} is not positive and finite", df);
  check(!std::isnan(t), "student_t", "t is nan");
  const double square = t * t;
  if (std::isinf(square)) return 0;
  return incomplete_beta(df / (df + square), square / (df + square), df / 2, 0.5);
}

double student_t_quantile(double p, double df) {
  check(p > 0 && p < 1, "student_t_quantile", "p = {} is not in (0, 1)", p);
  check(df >= 1 && std::isfinite(df), "student_t_quantile", "df = {} is not a finite number from 1 on", df);
  if (p == 0.5) return 0;
  const double two_sided = p < 0.5 ? 2 * p : 2 * (1 - p);
  // The tail falls with t: bracket, then halve until the two ends are neighbours.
  double low = 0, high = 1;
  while (student_t_two_sided(high, df) > two_sided) {
    low = high;
    high *= 2;
  }
  for (double middle = 0.5 * (low + high); middle > low && middle < high; middle = 0.5 * (low + high)) {
    (student_t_two_sided(middle, df) > two_sided ? low : high) = middle;
  }
  return p < 0.5 ? -high : high;
}

std::vector<std::optional<double>> holm(std::span<const std::optional<double>> p_values) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < p_values.size(); ++i) {
    if (!p_values[i]) continue;
    check(*p_values[i] >= 0 && *p_values[i] <= 1, "holm", "p = {} is not in [0, 1]", *p_values[i]);
    order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return *p_values[a] < *p_values[b]; });
  std::vector<std::optional<double>> adjusted(p_values.size());
  double largest = 0;
  for (std::size_t rank = 0; rank < order.size(); ++rank) {
    const double p = static_cast<double>(p_values.size() - rank) * *p_values[order[rank]];
    largest = std::min(1.0, std::max(largest, p));
    adjusted[order[rank]] = largest;
  }
  return adjusted;
}

double sign_flip_test(std::span<const double> differences) {
  const std::int64_t n = std::ssize(differences);
  check(n >= fewest_sign_flips && n <= most_sign_flips, "sign_flip_test", "{} differences (allowed: {} … {})",
        n, fewest_sign_flips, most_sign_flips);
  double sum = 0, absolute = 0;
  for (const double difference : differences) {
    check(std::isfinite(difference), "sign_flip_test", "the difference {} is not finite", difference);
    sum += difference;
    absolute += std::abs(difference);
  }
  // Rounding moves a sum by at most n · 2^-53 · absolute; real ties must count as ties.
  const double limit = std::abs(sum) - 1e-13 * absolute;
  if (limit <= 0) return 1;
  // Meet in the middle: every sum is one of the left half plus one of the right half.
  const auto half = static_cast<std::size_t>(n / 2);
  const std::vector<double> left = signed_sums(differences.first(half));
  std::vector<double> right = signed_sums(differences.subspan(half));
  std::sort(right.begin(), right.end());
  double extreme = 0;  // exact: at most 2^40
  for (const double part : left) {
    const auto above = std::lower_bound(right.begin(), right.end(), limit - part);
    extreme += static_cast<double>(right.end() - above);
  }
  // Turning every sign round maps the sums >= limit onto those <= -limit.
  return 2 * extreme / std::ldexp(1.0, static_cast<int>(n));
}

}  // namespace headlab
