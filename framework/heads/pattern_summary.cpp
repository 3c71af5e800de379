#include "framework/heads/pattern_summary.h"

#include <algorithm>

namespace headlab {

double PatternSummary::share_at(std::int64_t offset) const {
  const std::int64_t index = offset - first_offset;
  const auto size = static_cast<std::int64_t>(offset_share.size());
  return index >= 0 && index < size ? offset_share[static_cast<std::size_t>(index)] : 0;
}

double PatternSummary::mass_at(std::int64_t offset) const {
  const std::int64_t index = offset - first_offset;
  const auto size = static_cast<std::int64_t>(offset_mass.size());
  return index >= 0 && index < size ? offset_mass[static_cast<std::size_t>(index)] : 0;
}

std::int64_t PatternSummary::best(const std::vector<double>& profile) const {
  std::int64_t offset = 0;
  double largest = -1;
  for (std::size_t i = 0; i < profile.size(); ++i) {
    if (!common(i) || profile[i] <= largest) continue;
    largest = profile[i];
    offset = first_offset + static_cast<std::int64_t>(i);
  }
  return offset;
}

std::vector<std::int64_t> summary_offsets(std::int64_t n_q, std::int64_t n_k) {
  constexpr std::int64_t furthest = 64;
  const bool all = n_q + n_k - 1 <= 2 * furthest + 1;
  const std::int64_t first = all ? -(n_k - 1) : -furthest;
  const std::int64_t last = all ? n_q - 1 : furthest;
  std::vector<std::int64_t> offsets;
  for (std::int64_t offset = first; offset <= last; ++offset) offsets.push_back(offset);
  return offsets;
}

PatternSummary pattern_summary(const HeadTelemetry& sums, std::int64_t first_offset) {
  PatternSummary s;
  s.queries = sums.queries;
  s.entropy = sums.mean(&HeadTelemetry::entropy);
  s.normalised_entropy = sums.mean(&HeadTelemetry::normalised_entropy);
  s.effective_keys = sums.mean(&HeadTelemetry::effective_keys);
  s.confidence = sums.mean(&HeadTelemetry::confidence);
  s.distance = sums.mean(&HeadTelemetry::distance);
  if (!sums.keys.empty()) s.sink_mass = sums.keys.front().mean_mass();
  s.first_offset = first_offset;
  for (const HeadTelemetry::Mass& mass : sums.offsets) {
    s.offset_mass.push_back(mass.mean_mass());
    s.offset_share.push_back(mass.share());
    s.offset_queries.push_back(mass.queries);
  }
  s.self_mass = s.mass_at(0);
  return s;
}

}  // namespace headlab
