#include "framework/core/suggest.h"

#include <algorithm>
#include <limits>
#include <utility>

#include <fmt/core.h>

namespace headlab {

namespace {

constexpr std::size_t longest_name = 64;
constexpr std::size_t longest_listed = 256;

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

std::string_view without_dashes(std::string_view name) {
  name.remove_prefix(std::min(name.find_first_not_of('-'), name.size()));
  return name;
}

}  // namespace

std::int64_t edit_distance(std::string_view a, std::string_view b) {
  // Three rows of the table d[i][j] = distance between the first i bytes of a and the first j bytes of b.
  std::vector<std::int64_t> before(b.size() + 1), previous(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = static_cast<std::int64_t>(j);
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::swap(before, previous);
    std::swap(previous, row);
    row[0] = static_cast<std::int64_t>(i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const char x = lower(a[i - 1]), y = lower(b[j - 1]);
      row[j] = std::min({previous[j] + 1, row[j - 1] + 1, previous[j - 1] + (x == y ? 0 : 1)});
      const bool swapped = i > 1 && j > 1 && x == lower(b[j - 2]) && lower(a[i - 2]) == y;
      if (swapped) row[j] = std::min(row[j], before[j - 2] + 1);
    }
  }
  return row[b.size()];
}

std::optional<std::string> nearest_name(std::string_view name, std::span<const std::string> candidates) {
  const std::string_view bare = without_dashes(name);
  if (bare.empty() || bare.size() > longest_name) return std::nullopt;
  const std::string* best = nullptr;
  std::int64_t best_distance = std::max<std::int64_t>(1, std::ssize(bare) / 3) + 1;
  for (const std::string& candidate : candidates) {
    const std::string_view other = without_dashes(candidate);
    if (other.empty() || other.size() > 2 * longest_name) continue;
    const std::int64_t distance = edit_distance(bare, other);
    // A name of which nothing is left is no suggestion.
    if (distance >= best_distance || distance >= std::ssize(bare)) continue;
    best = &candidate;
    best_distance = distance;
  }
  if (!best) return std::nullopt;
  return *best;
}

std::vector<std::string> nearest_names(std::string_view name, std::span<const std::string> candidates,
                                       std::size_t count) {
  std::vector<std::string> nearest;
  if (name.size() > longest_listed) return nearest;
  std::vector<std::pair<std::int64_t, const std::string*>> ranked;
  for (const std::string& candidate : candidates) {
    const std::string_view start = std::string_view(candidate).substr(0, longest_listed);
    ranked.emplace_back(edit_distance(name, start), &candidate);
  }
  std::stable_sort(ranked.begin(), ranked.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  for (std::size_t i = 0; i < std::min(count, ranked.size()); ++i) nearest.push_back(*ranked[i].second);
  return nearest;
}

std::string did_you_mean(std::string_view name, std::span<const std::string> candidates) {
  const auto nearest = nearest_name(name, candidates);
  return nearest ? fmt::format(" (did you mean '{}'?)", *nearest) : std::string();
}

}  // namespace headlab
