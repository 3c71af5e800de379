// Probabilities and tests that need no data structure: Student's t, Holm's correction, the exact sign-flip
// test. f64, thread-safe, pure.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace headlab {

/// The regularised incomplete beta function I_x(a, b), relative error about 1e-13 for a, b up to 100
/// (continued fraction 8.17.22 of the NIST Digital Library of Mathematical Functions, modified Lentz method).
/// Errors: x outside [0, 1], a or b not positive and finite.
double incomplete_beta(double x, double a, double b);

/// P(|T| >= |t|) of Student's t with df > 0 degrees of freedom: I_x(df/2, 1/2), x = df / (df + t²).
double student_t_two_sided(double t, double df);

/// The t with P(T <= t) = p, for p in (0, 1) and df >= 1 (need not be whole). student_t_quantile(0.975, 4) is
/// 2.776445.
double student_t_quantile(double p, double df);

/// Holm's step-down adjusted p-values for a family of `tests` hypotheses (Holm 1979): the i-th smallest of
/// them, i = 0, 1, …, becomes the largest of (tests - j) · p_j over j <= i, at most 1. An absent p-value (no
/// test was made) stays absent but belongs to the family, as if it were 1. Errors: a p outside [0, 1].
std::vector<std::optional<double>> holm(std::span<const std::optional<double>> p_values);

/// The fewest and the most differences that sign_flip_test takes: with 6 its smallest p is 0.03, which Holm
/// over three levels can't bring under 0.05; over 40 the exact count takes too long.
constexpr std::int64_t fewest_sign_flips = 7;
constexpr std::int64_t most_sign_flips = 40;

/// The exact two-sided sign-flip (paired permutation) test that differences lie symmetrically about 0
/// (Fisher 1935, Pitman 1937): the share of the 2^n ways to give them signs whose |sum| is at least the |sum|
/// seen. Sums that differ by rounding alone count as equal. Errors: n outside the limits above, a difference
/// that is not finite.
double sign_flip_test(std::span<const double> differences);

}  // namespace headlab
