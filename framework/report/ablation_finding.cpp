#include <algorithm>
#include <cmath>
#include <vector>

#include "framework/report/ablation.h"
#include "framework/report/ablation_parts.h"
#include "framework/report/format.h"

namespace headlab {

using namespace ablation_parts;

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

std::string jobs_of_heads(const AblationResult& result) {
  const std::int64_t targets = std::ssize(result.targets);
  std::string text;
  if (targets == 0) return text;
  for (const AblationLevel& level : result.levels) {
    std::int64_t all = 0, seeds = 0, least = targets, most = 0;
    for (const std::optional<RunRecord>& run : level.runs) {
      if (!run || run->failure || !run->figures) continue;
      ++seeds;
      all += run->figures->cover == targets ? 1 : 0;
      least = std::min(least, run->figures->cover);
      most = std::max(most, run->figures->cover);
    }
    if (seeds == 0) continue;
    const std::string whole = targets == 1 ? "the target" : fmt::format("each of the {} targets", targets);
    const std::string some = least == most ? fmt::format("{}", most) : fmt::format("{} to {}", least, most);
    text += text.empty() ? "With " : " With ";
    if (all == seeds) {
      text += fmt::format("{}, {} a clean head for {}", h(level),
                          seeds == 1 ? "the seed grows" : fmt::format("every one of {} seeds grows", seeds),
                          whole);
    } else if (all > 0) {
      text += fmt::format("{}, {} of {} seeds grow{} a clean head for {}", h(level), all, seeds,
                          all == 1 ? "s" : "", whole);
      if (targets > 1) text += fmt::format(" (the others for {} of them at least)", least);
    } else if (targets == 1 || most == 0) {
      text += fmt::format("{}, no seed has a clean head", h(level));
    } else {
      text += fmt::format("{}, clean heads cover {} of {} targets", h(level), some, targets);
    }
    // One target leaves nothing to blend.
    if (all < seeds && targets > 1 && level.blended.mean && *level.blended.mean >= 1.5) {
      text += fmt::format("; a head blends {} targets on average", fixed(*level.blended.mean, 1));
    }
    text += ".";
  }
  return text;
}

std::string finding(const AblationResult& result) {
  const std::vector<const AblationLevel*> levels = measured(result);
  if (levels.empty()) return "No run has finished, so there is nothing to say yet.";
  std::string after = fmt::format("after {} steps", grouped(result.base.recipe.steps));
  if (result.hold != Hold::d_model) after += fmt::format(" ({})", held(result));
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
    const bool apart = std::any_of(compared.begin(), compared.end(), [](const AblationLevel* level) {
      const Interval& interval = *level->difference->interval;
      return interval.low > 0 || interval.high < 0;
    });
    const std::string why =
        apart ? fmt::format("with the correction for {} comparisons no test reaches 0.05", compared.size())
              : "every 95 % interval of the paired differences includes 0";
    return figures + fmt::format("No head count differs from h={} for certain: {}; more seeds would tell.",
                                 result.reference, why);
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
