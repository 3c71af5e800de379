#include "framework/sweep/statistics.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "framework/core/check.h"
#include "framework/core/significance.h"

namespace headlab {

namespace {

bool present(const std::optional<double>& value) { return value && std::isfinite(*value); }

/// Whether the values differ by no more than the rounding of numbers as large as `scale`.
bool equal_up_to_rounding(std::span<const double> values, double scale) {
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  return *most - *least <= 8 * std::numeric_limits<double>::epsilon() * scale;
}

double largest_magnitude(std::span<const double> values) {
  double largest = 0;
  for (const double value : values) largest = std::max(largest, std::abs(value));
  return largest;
}

struct Spread {
  double mean = 0;
  std::optional<double> deviation;
  std::optional<Interval> interval;
};

/// `values` is not empty; `equal` says that they differ by rounding alone.
Spread spread_of(std::span<const double> values, bool equal) {
  const auto n = static_cast<double>(values.size());
  Spread spread;
  if (equal) {
    spread.mean = values.front();
  } else {
    for (const double value : values) spread.mean += value / n;
  }
  if (values.size() < 2) return spread;
  double squares = 0;
  if (!equal) {
    for (const double value : values) squares += (value - spread.mean) * (value - spread.mean);
  }
  spread.deviation = std::sqrt(squares / (n - 1));
  const double half = equal ? 0 : student_t_quantile(0.975, n - 1) * *spread.deviation / std::sqrt(n);
  spread.interval = Interval{spread.mean - half, spread.mean + half};
  return spread;
}

Comparison compare(const SeedValues& level, const SeedValues& reference) {
  Comparison result;
  std::vector<double> differences;
  double scale = 0;
  for (std::size_t seed = 0; seed < level.size(); ++seed) {
    if (!present(level[seed]) || !present(reference[seed])) {
      ++result.dropped;
      continue;
    }
    differences.push_back(*level[seed] - *reference[seed]);
    scale = std::max({scale, std::abs(*level[seed]), std::abs(*reference[seed])});
  }
  result.n = std::ssize(differences);
  if (differences.empty()) {
    result.reason = NoTest::no_shared_seeds;
    return result;
  }
  const bool equal = equal_up_to_rounding(differences, scale);
  const Spread spread = spread_of(differences, equal);
  result.mean = spread.mean;
  result.interval = spread.interval;
  if (equal && result.n >= 2) {
    result.reason = NoTest::all_equal;
  } else if (result.n < fewest_sign_flips) {
    result.reason = NoTest::too_few_seeds;
  } else if (result.n > most_sign_flips) {
    result.reason = NoTest::too_many_seeds;
  } else {
    result.p = sign_flip_test(differences);
  }
  return result;
}

}  // namespace

Summary summarise(const SeedValues& values) {
  std::vector<double> there;
  for (const auto& value : values) {
    if (present(value)) there.push_back(*value);
  }
  Summary summary;
  summary.n = std::ssize(there);
  summary.missing = std::ssize(values) - summary.n;
  if (there.empty()) return summary;
  const Spread spread = spread_of(there, equal_up_to_rounding(there, largest_magnitude(there)));
  summary.mean = spread.mean;
  summary.deviation = spread.deviation;
  summary.interval = spread.interval;
  return summary;
}

std::vector<Comparison> compare_levels(std::span<const SeedValues> levels, std::size_t reference) {
  check(reference < levels.size(), "compare_levels", "reference {} is not one of the {} levels", reference,
        levels.size());
  std::vector<Comparison> comparisons;
  std::vector<std::optional<double>> p_values;
  for (std::size_t level = 0; level < levels.size(); ++level) {
    check(levels[level].size() == levels[reference].size(), "compare_levels",
          "level {} has {} seeds, the reference has {}", level, levels[level].size(),
          levels[reference].size());
    if (level == reference) continue;
    comparisons.push_back(compare(levels[level], levels[reference]));
    comparisons.back().level = level;
    p_values.push_back(comparisons.back().p);
  }
  const auto adjusted = holm(p_values);
  for (std::size_t i = 0; i < comparisons.size(); ++i) comparisons[i].adjusted_p = adjusted[i];
  return comparisons;
}

std::string verdict(const Comparison& comparison) {
  switch (comparison.reason) {
    case NoTest::no_shared_seeds:
      return "no shared seeds";
    case NoTest::all_equal:
      return "all differences equal";
    case NoTest::too_few_seeds:
      return "too few seeds";
    case NoTest::too_many_seeds:
      return "too many seeds";
    case NoTest::tested:
      break;
  }
  check(comparison.adjusted_p.has_value(), "verdict", "the comparison has no adjusted p-value");
  const double p = *comparison.adjusted_p;
  return p < 0.001 ? "p < 0.001" : fmt::format("p = {:.3f}", p);
}

}  // namespace headlab
