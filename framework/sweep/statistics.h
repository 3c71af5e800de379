// Statistics over seeds: what a level (a head count) gives, and how it differs from a reference level over
// the seeds that both share. Pure functions; thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace headlab {

/// The result of each seed of one level, in the order of seeds. An absent value is a run that failed or is
/// not there; a value that is not finite counts as absent.
using SeedValues = std::vector<std::optional<double>>;

struct Interval {
  double low = 0;
  double high = 0;
  double half_width() const { return (high - low) / 2; }
};

struct Summary {
  std::int64_t n = 0;                ///< values that are there
  std::int64_t missing = 0;          ///< values that are not
  std::optional<double> mean;        ///< absent for n = 0
  std::optional<double> deviation;   ///< standard deviation with n - 1; absent for n < 2
  std::optional<Interval> interval;  ///< mean ± t(0.975, n - 1) · deviation / √n; absent for n < 2
};

/// Mean and 95 % t interval. (A percentile bootstrap over 5 seeds covers only 84 %.) Values that are equal up
/// to rounding have deviation 0 and the interval [mean, mean].
Summary summarise(const SeedValues& values);

/// Why a comparison has no p-value.
enum class NoTest : std::uint8_t { tested, no_shared_seeds, all_equal, too_few_seeds, too_many_seeds };

/// One level against the reference: differences value(level, seed) - value(reference, seed).
struct Comparison {
  std::size_t level = 0;             ///< index of the level
  std::int64_t n = 0;                ///< seeds where both values are there
  std::int64_t dropped = 0;          ///< seeds where one or both are missing
  std::optional<double> mean;        ///< mean difference; absent for n = 0
  std::optional<Interval> interval;  ///< 95 % t interval of it, not adjusted; absent for n < 2
  std::optional<double> p;           ///< exact two-sided sign-flip test; absent unless `reason` is `tested`
  std::optional<double> adjusted_p;  ///< after Holm's correction over all comparisons
  NoTest reason = NoTest::tested;
};

/// Every level but the reference, in order, compared with the reference over shared seeds. The test is exact
/// and two-sided, from 7 seeds on; its p-values are adjusted over levels - 1 comparisons, whether all of them
/// could be tested or not. Differences that are all equal (n >= 2) have the interval [d, d] and no test.
/// Errors: no such reference; levels with different numbers of seeds.
std::vector<Comparison> compare_levels(std::span<const SeedValues> levels, std::size_t reference);

/// "too few seeds", "all differences equal", … or "p = 0.047" with the adjusted value, for a table or note.
std::string verdict(const Comparison& comparison);

}  // namespace headlab
