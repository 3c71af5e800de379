#include "framework/heads/target_statistics.h"

#include <algorithm>
#include <cmath>

#include "framework/core/check.h"

namespace headlab {

void TargetStatistics::add(const PatternRows& rows, const Array& keys) {
  check(keys && keys.rank() == 2 && keys.dtype() == DType::i64 && keys.dim(1) == rows.n_q(), "head target",
        "labels {} do not fit patterns of {} queries", keys.shape(), rows.n_q());
  if (sums_.empty()) {
    n_k_ = rows.n_k();
    sums_.resize(static_cast<std::size_t>(rows.heads()));
    offsets_.resize(static_cast<std::size_t>(rows.offsets()));
  }
  check(sums_.size() == static_cast<std::size_t>(rows.heads()) &&
            offsets_.size() == static_cast<std::size_t>(rows.offsets()) && n_k_ == rows.n_k(),
        "head target", "{} heads of {} x {} do not fit earlier patterns", rows.heads(), rows.n_q(),
        rows.n_k());
  const std::int64_t* labels = keys.data<std::int64_t>();
  for (std::int64_t head = 0; head < rows.heads(); ++head) {
    Sums& sums = sums_[static_cast<std::size_t>(head)];
    rows.for_each(head, [&](const PatternRow& row) {
      const std::int64_t key = labels[row.example * rows.n_q() + row.query];
      if (key == unscored) return;
      ++sums.queries;
      if (kind_ == HeadTarget::Kind::uniform) {
        sums.normalised += entropy_of(row) / std::log(static_cast<double>(row.allowed));
        return;
      }
      check(row.allows(key), "head target", "example {}, query {}: key {} may not be attended to",
            row.example, row.query, key);
      sums.mass += static_cast<double>(row.weights[key]);
      if (argmax_of(row) == key) ++sums.hits;
      if (head == 0) ++offsets_[static_cast<std::size_t>(key - row.aligned + n_k_ - 1)];
    });
  }
}

TargetScore TargetStatistics::score(std::int64_t head) const {
  if (sums_.empty()) return {};
  const Sums& sums = sums_[static_cast<std::size_t>(head)];
  if (sums.queries == 0) return {};
  const auto n = static_cast<double>(sums.queries);
  return {sums.queries, sums.mass / n, static_cast<double>(sums.hits) / n, sums.normalised / n};
}

std::int64_t TargetStatistics::best_offset() const {
  const auto best = std::max_element(offsets_.begin(), offsets_.end());
  return best == offsets_.end() || *best == 0 ? 0 : (best - offsets_.begin()) - (n_k_ - 1);
}

double TargetStatistics::share_of_offset(std::int64_t offset) const {
  const std::int64_t index = offset + n_k_ - 1;
  if (sums_.empty() || sums_[0].queries == 0 || index < 0 ||
      index >= static_cast<std::int64_t>(offsets_.size()))
    return 0;
  return static_cast<double>(offsets_[static_cast<std::size_t>(index)]) /
         static_cast<double>(sums_[0].queries);
}

}  // namespace headlab
