#include "framework/heads/target_score.h"

namespace headlab {

TargetScore target_score(const HeadTelemetry::Mass& sums, HeadTarget::Kind kind) {
  if (sums.queries == 0) return {};
  if (kind == HeadTarget::Kind::key) return {sums.queries, sums.mean_mass(), sums.share(), 0};
  return {sums.queries, 0, 0, sums.normalised_entropy / static_cast<double>(sums.queries)};
}

void LabelOffsets::add(const Array& labels, std::int64_t n_k) {
  const std::int64_t n_q = labels.dim(1);
  const std::int64_t* keys = labels.data<std::int64_t>();
  for (std::int64_t i = 0; i < labels.size(); ++i) {
    if (keys[i] == unscored) continue;
    ++counts_[keys[i] - (i % n_q + n_k - n_q)];
    ++labels_;
  }
}

std::int64_t LabelOffsets::best() const {
  std::int64_t offset = 0;
  std::int64_t most = 0;
  for (const auto& entry : counts_) {
    if (entry.second <= most) continue;
    offset = entry.first;
    most = entry.second;
  }
  return offset;
}

double LabelOffsets::share(std::int64_t offset) const {
  const auto found = counts_.find(offset);
  return found == counts_.end() ? 0 : static_cast<double>(found->second) / static_cast<double>(labels_);
}

}  // namespace headlab
