#include "framework/heads/pattern_statistics.h"

#include <cmath>

#include "framework/core/check.h"
#include "framework/core/parallel.h"

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

void PatternStatistics::add(const PatternRows& rows) {
  const auto offsets = static_cast<std::size_t>(rows.offsets());
  if (sums_.empty()) {
    n_q_ = rows.n_q();
    n_k_ = rows.n_k();
    sums_.resize(static_cast<std::size_t>(rows.heads()));
    for (Sums& sums : sums_) {
      sums.mass.resize(offsets);
      sums.argmax.resize(offsets);
      sums.allowed.resize(offsets);
    }
  }
  check(rows.heads() == heads() && rows.n_q() == n_q_ && rows.n_k() == n_k_, "PatternStatistics",
        "{} heads of {} x {} do not fit earlier patterns of {} heads of {} x {}", rows.heads(), rows.n_q(),
        rows.n_k(), heads(), n_q_, n_k_);
  const double weights = static_cast<double>(rows.n_q() * rows.n_k());
  parallel_for(heads(), 1, {.flops = 400 * weights, .bytes = 4 * weights},
               [&](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t head = begin; head < end; ++head) {
                   Sums& sums = sums_[static_cast<std::size_t>(head)];
                   rows.for_each(head, [&](const PatternRow& row) { add_row(sums, row, n_k_); });
                 }
               });
}

void PatternStatistics::add_row(Sums& sums, const PatternRow& row, std::int64_t n_k) {
  double distance = 0;
  for (std::int64_t key = row.mask.first; key < row.mask.last; ++key) {
    if (!row.allows(key)) continue;
    const double weight = static_cast<double>(row.weights[key]);
    const std::int64_t offset = key - row.aligned;
    const auto index = static_cast<std::size_t>(offset + n_k - 1);
    sums.mass[index] += weight;
    ++sums.allowed[index];
    distance += weight * static_cast<double>(std::abs(offset));
  }
  const std::int64_t argmax = argmax_of(row);
  const double entropy = entropy_of(row);
  ++sums.queries;
  ++sums.argmax[static_cast<std::size_t>(argmax - row.aligned + n_k - 1)];
  sums.entropy += entropy;
  sums.normalised += entropy / std::log(static_cast<double>(row.allowed));
  sums.effective += std::exp(entropy);
  sums.confidence += static_cast<double>(row.weights[argmax]);
  sums.distance += distance;
  if (row.allows(0)) {
    ++sums.sink_queries;
    sums.sink += static_cast<double>(row.weights[0]);
  }
}

PatternSummary PatternStatistics::summary(std::int64_t head) const {
  check(head >= 0 && head < heads(), "PatternStatistics", "head {} of {} was asked for", head, heads());
  const Sums& sums = sums_[static_cast<std::size_t>(head)];
  const auto mean = [](double sum, std::int64_t n) { return n > 0 ? sum / static_cast<double>(n) : 0.0; };
  PatternSummary s;
  s.queries = sums.queries;
  s.entropy = mean(sums.entropy, s.queries);
  s.normalised_entropy = mean(sums.normalised, s.queries);
  s.effective_keys = mean(sums.effective, s.queries);
  s.confidence = mean(sums.confidence, s.queries);
  s.distance = mean(sums.distance, s.queries);
  s.sink_mass = mean(sums.sink, sums.sink_queries);
  s.first_offset = -(n_k_ - 1);
  s.offset_queries = sums.allowed;
  for (std::size_t i = 0; i < sums.mass.size(); ++i) {
    s.offset_mass.push_back(mean(sums.mass[i], sums.allowed[i]));
    s.offset_share.push_back(mean(static_cast<double>(sums.argmax[i]), sums.allowed[i]));
  }
  s.self_mass = s.mass_at(0);
  return s;
}

}  // namespace headlab
