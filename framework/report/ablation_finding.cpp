#include <algorithm>
#include <cmath>
#include <vector>

#include "framework/report/ablation.h"
#include "framework/report/format.h"

namespace headlab {
namespace {

constexpr double equal_means = 0.01 + 1e-12;

/// Levels with a mean, by head count.
std::vector<const AblationLevel*> measured(const AblationResult& result) {
  std::vector<const AblationLevel*> levels;
  for (const AblationLevel& level : result.levels) {
    if (level.accuracy.mean) levels.push_back(&level);
  }
  std::sort(levels.begin(), levels.end(),
            [](const AblationLevel* a, const AblationLevel* b) { return a->heads < b->heads; });
  return levels;
}

double mean_of(const AblationLevel& level) { return *level.accuracy.mean; }

/// +1 or -1 where the difference to the reference is there for certain, else 0.
int direction(const AblationLevel& level) {
  const std::optional<Comparison>& difference = level.difference;
  if (!difference || !difference->interval) return 0;
  if (difference->adjusted_p && *difference->adjusted_p >= 0.05) return 0;
  if (difference->interval->low > 0) return 1;
  return difference->interval->high < 0 ? -1 : 0;
}

std::string h(const AblationLevel& level) { return fmt::format("h={}", level.heads); }

std::string interval_text(const Interval& interval) {
  return fmt::format("[{}, {}]", fixed(interval.low), fixed(interval.high));
}

std::string joined(const std::vector<const AblationLevel*>& levels) {
  std::string text;
  for (std::size_t i = 0; i < levels.size(); ++i) {
    if (i > 0) text += i + 1 == levels.size() ? " and " : ", ";
    text += h(*levels[i]);
  }
  return text;
}

std::string means(const std::vector<const AblationLevel*>& levels) {
  std::string text;
  for (const AblationLevel* level : levels) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", h(*level), fixed(mean_of(*level)));
  }
  return text;
}

const AblationLevel* highest(const std::vector<const AblationLevel*>& levels) {
  return *std::max_element(levels.begin(), levels.end(), [](const AblationLevel* a, const AblationLevel* b) {
    return mean_of(*a) < mean_of(*b);
  });
}

const AblationLevel* lowest(const std::vector<const AblationLevel*>& levels) {
  return *std::min_element(levels.begin(), levels.end(), [](const AblationLevel* a, const AblationLevel* b) {
    return mean_of(*a) < mean_of(*b);
  });
}

/// "accuracy rises by 0.791 [0.786, 0.795] from h=1 to h=8"
std::string change(const AblationLevel& to, std::int64_t reference) {
  const Interval by = *to.difference->interval;
  const double mean = *to.difference->mean;
  const bool up = mean > 0;
  const Interval size = up ? by : Interval{-by.high, -by.low};
  return fmt::format("accuracy {} by {} {} from h={} to {}", up ? "rises" : "falls", fixed(std::abs(mean)),
                     interval_text(size), reference, h(to));
}

/// What becomes of accuracy at head counts beyond the one where it is as good as it gets.
std::string beyond(const AblationResult& result, const std::vector<const AblationLevel*>& levels,
                   const AblationLevel& peak) {
  std::vector<AblationLevel> against_peak;
  for (const AblationLevel* level : levels) against_peak.push_back(*level);
  summarise_levels(against_peak, peak.heads);
  std::vector<const AblationLevel*> same, lower, unsure;
  for (std::size_t i = 0; i < levels.size(); ++i) {
    const AblationLevel& level = *levels[i];
    if (level.heads <= peak.heads || level.heads == result.reference) continue;
    if (mean_of(level) >= mean_of(peak) - equal_means) {
      same.push_back(&level);
    } else {
      (direction(against_peak[i]) < 0 ? lower : unsure).push_back(&level);
    }
  }
  std::string text;
  if (!same.empty()) text += ", no further at " + joined(same);
  if (!lower.empty()) {
    text += fmt::format(", and falls again to {} at {}", fixed(mean_of(*lowest(lower))), h(*lowest(lower)));
  }
  if (!unsure.empty()) {
    text += fmt::format(", with less on average, but no certain fall, at {}", joined(unsure));
  }
  return text;
}

}  // namespace

std::string finding(const AblationResult& result) {
  const std::vector<const AblationLevel*> levels = measured(result);
  if (levels.empty()) return "No run has finished, so there is nothing to say yet.";
  const std::string after = fmt::format("after {} steps", grouped(result.base.recipe.steps));
  if (levels.size() == 1) {
    const AblationLevel& only = *levels.front();
    return fmt::format(
        "Accuracy {} is {} at {}; there is no other head count to compare with.", after,
        estimate(only.accuracy.mean,
                 only.accuracy.interval ? std::optional(only.accuracy.interval->half_width()) : std::nullopt),
        h(only));
  }
  const std::string figures = fmt::format("Accuracy {}: {}. ", after, means(levels));
  std::vector<const AblationLevel*> compared, up, down;
  bool every_interval = true;
  for (const AblationLevel* level : levels) {
    if (level->heads == result.reference) continue;
    if (!level->difference || !level->difference->interval) {
      every_interval = false;
      continue;
    }
    compared.push_back(level);
    if (direction(*level) > 0) up.push_back(level);
    if (direction(*level) < 0) down.push_back(level);
  }
  if (compared.empty()) {
    return figures + "A difference needs two shared seeds at least: nothing can be said about head counts.";
  }
  const double range = mean_of(*highest(levels)) - mean_of(*lowest(levels));
  if (range <= equal_means && every_interval) {
    const std::string most = range < 0.0005 ? "" : fmt::format(" (at most {})", fixed(range));
    return figures + fmt::format("Head count makes no difference here{}.", most);
  }
  if (up.empty() && down.empty()) {
    return figures + fmt::format(
                         "No head count differs from h={} for certain: every 95 % interval of the "
                         "paired differences includes 0; more seeds would tell.",
                         result.reference);
  }
  if (up.empty()) {
    const AblationLevel& worst = *lowest(down);
    return figures + fmt::format("Here {} (paired, 95 % interval, n={}).", change(worst, result.reference),
                                 worst.difference->n);
  }
  // The smallest head count that is as good as the best of those that are better for certain.
  const double best = mean_of(*highest(up));
  const AblationLevel& peak = **std::find_if(up.begin(), up.end(), [best](const AblationLevel* level) {
    return mean_of(*level) >= best - equal_means;
  });
  std::string text =
      figures + fmt::format("So {} (paired, 95 % interval, n={}){}", change(peak, result.reference),
                            peak.difference->n, beyond(result, levels, peak));
  return text + ".";
}

}  // namespace headlab
