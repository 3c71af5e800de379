#include "framework/heads/specialisation.h"

#include <algorithm>
#include <cmath>

#include "framework/core/check.h"
#include "framework/core/parallel.h"
#include "framework/heads/head_sites.h"

namespace headlab {

// Per key: ½ p ln p + ½ q ln q − m ln m with m = (p+q)/2, whose sum is JS; none of them is 0 after smoothing.
double root_js(const ResolvedMask::Row& row, std::int64_t allowed, const float* first, const float* second) {
  const double floor = 0.001 / static_cast<double>(allowed);
  double js = 0;
  for (std::int64_t key = row.first; key < row.last; ++key) {
    if (!row.allows(key)) continue;
    const double p = 0.999 * static_cast<double>(first[key]) + floor;
    const double q = 0.999 * static_cast<double>(second[key]) + floor;
    const double m = (p + q) / 2;
    js += (p * std::log(p) + q * std::log(q)) / 2 - m * std::log(m);
  }
  return std::sqrt(std::max(js, 0.0));
}

void PatternDistances::add(const Array& pattern, const Mask& mask, const Array& counted) {
  check(pattern && pattern.rank() == 4 && pattern.dtype() == DType::f32, "PatternDistances",
        "needs a pattern f32 [B, heads, n_q, n_k], not {} {}", name_of(pattern.dtype()), pattern.shape());
  const Shape shape = pattern.shape();
  const std::int64_t n_q = shape[2];
  const std::int64_t n_k = shape[3];
  check(!counted || (counted.dtype() == DType::u8 && counted.shape() == Shape{shape[0], n_q}),
        "PatternDistances", "flags of queries {} {} do not fit patterns of {}", name_of(counted.dtype()),
        counted.shape(), shape);
  if (heads_ == 0) {
    heads_ = shape[1];
    sums_.resize(static_cast<std::size_t>(heads_ * heads_));
    queries_.resize(sums_.size());
  }
  check(shape[1] == heads_, "PatternDistances", "{} heads do not fit earlier patterns of {} heads", shape[1],
        heads_);
  const ResolvedMask resolved(mask, shape[0], shape[1], n_q, n_k, "PatternDistances");
  const std::uint8_t* flags = counted ? counted.data<std::uint8_t>() : nullptr;
  const float* weights = pattern.data<float>();
  const auto add_pair = [&](std::int64_t a, std::int64_t b) {
    const auto pair = static_cast<std::size_t>(a * heads_ + b);
    for (std::int64_t i = 0; i < shape[0] * n_q; ++i) {
      const std::int64_t example = i / n_q;
      const std::int64_t query = i % n_q;
      if (flags && flags[i] == 0) continue;
      const std::int64_t allowed = resolved.allowed_keys(example, a, query);
      if (allowed < 2) continue;
      const auto row = [&](std::int64_t head) {
        return weights + ((example * heads_ + head) * n_q + query) * n_k;
      };
      sums_[pair] += root_js(resolved.row(example, a, query), allowed, row(a), row(b));
      ++queries_[pair];
    }
  };
  const double size = static_cast<double>(shape[0] * n_q * n_k);
  parallel_for(heads_ * heads_, 1, {.flops = 400 * size, .bytes = 8 * size},
               [&](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t pair = begin; pair < end; ++pair) {
                   if (pair / heads_ < pair % heads_) add_pair(pair / heads_, pair % heads_);
                 }
               });
}

double PatternDistances::between(std::int64_t a, std::int64_t b) const {
  check(a >= 0 && a < heads_ && b >= 0 && b < heads_, "PatternDistances", "heads {} and {} of {}", a, b,
        heads_);
  const auto pair = static_cast<std::size_t>(std::min(a, b) * heads_ + std::max(a, b));
  return queries_[pair] > 0 ? sums_[pair] / static_cast<double>(queries_[pair]) : 0;
}

double PatternDistances::diversity() const {
  if (heads_ < 2) return 0;
  double sum = 0;
  for (std::int64_t a = 0; a < heads_; ++a) {
    for (std::int64_t b = a + 1; b < heads_; ++b) sum += between(a, b);
  }
  const std::int64_t pairs = heads_ * (heads_ - 1) / 2;
  return sum / static_cast<double>(pairs);
}

std::vector<std::optional<double>> layer_diversity(Model& model, const Task& task, std::uint64_t seed,
                                                   std::int64_t most) {
  const std::vector<HeadLayer*> layers = head_layers(model);
  std::vector<std::optional<double>> result(layers.size());
  std::vector<std::string> names;
  std::int64_t weights = 1;  // of one example, in the layer that has most
  const Needs& needs = model.needs();
  for (std::size_t i = 0; i < layers.size(); ++i) {
    if (layers[i]->heads() < 2) {
      result[i] = 0;
      continue;
    }
    names.push_back(layers[i]->sites.pattern.path());
    const std::int64_t longest = std::max(needs.context, needs.source_context);
    weights = std::max(weights, layers[i]->heads() * longest * longest);
  }
  if (names.empty()) return result;
  const std::int64_t batch_size = std::clamp<std::int64_t>((std::int64_t{1} << 22) / weights, 1, 64);
  const std::int64_t size = std::min({most, diversity_sequences, task.held_out_size(HeldOut::score)});
  std::vector<PatternDistances> distances(layers.size());
  const ActivationCache seen(model, names);
  for (std::int64_t first = 0; first < size; first += batch_size) {
    const Batch batch = task.held_out(seed, first, std::min(batch_size, size - first), HeldOut::score);
    model.logits(batch);
    for (std::size_t i = 0; i < layers.size(); ++i) {
      const std::string name = layers[i]->sites.pattern.path();
      if (!seen.has(name)) continue;
      const AttentionSite site = site_of(*layers[i], needs);
      distances[i].add(seen[name], mask_of(site, needs, batch), counted_queries(site, batch));
      result[i] = distances[i].diversity();
    }
  }
  return result;
}

}  // namespace headlab
