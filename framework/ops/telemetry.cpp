#include "framework/ops/telemetry.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "framework/core/check.h"
#include "framework/core/parallel.h"
#include "framework/ops/telemetry_sums.h"

namespace headlab {

namespace {

void check_array(const Array& array, DType dtype, const Shape& shape, std::string_view what) {
  check(array.dtype() == dtype && array.shape() == shape, "telemetry", "needs {} {} {}, not {} {}", what,
        name_of(dtype), shape, name_of(array.dtype()), array.shape());
}

/// One row of weights and which of its keys are allowed.
template <class T>
class WeightRow {
 public:
  WeightRow(const T* weights, const ResolvedMask& mask, std::int64_t example, std::int64_t head,
            std::int64_t query)
      : weights_(weights), mask_(mask.row(example, head, query)) {
    if (mask_.bias >= 0) bias_ = &mask.bias();
  }
  bool allows(std::int64_t key) const {
    return mask_.allows(key) &&
           (bias_ == nullptr || bias_->at(mask_.bias + key) != -std::numeric_limits<double>::infinity());
  }
  /// f(key, weight) for the allowed keys, ascending.
  template <class F>
  void for_each(F&& f) const {
    for (std::int64_t key = mask_.first; key < mask_.last; ++key) {
      if (allows(key)) f(key, static_cast<double>(weights_[key]));
    }
  }
  double operator[](std::int64_t key) const { return static_cast<double>(weights_[key]); }

 private:
  const T* weights_;
  ResolvedMask::Row mask_;
  const Array* bias_ = nullptr;
};

/// aligned: the key at δ = 0. tokens: of the example's keys, or absent.
template <class T>
detail::QueryTelemetry finished(const WeightRow<T>& row, std::int64_t aligned, const std::int64_t* tokens,
                                std::span<detail::WantedKey> wanted) {
  detail::QueryTelemetry query;
  const bool has_token = tokens != nullptr && aligned >= 0;
  row.for_each([&](std::int64_t key, double weight) {
    ++query.allowed;
    if (weight != 0) query.entropy -= weight * std::log(weight);
    query.distance += weight * static_cast<double>(std::abs(key - aligned));
    if (query.argmax < 0 || weight > query.confidence) {
      query.argmax = key;
      query.confidence = weight;
    }
    if (has_token && key < aligned && tokens[key] == tokens[aligned]) {
      query.has_copies = true;
      query.copies += weight;
    }
  });
  query.entropy = std::max(query.entropy, 0.0);  // weights of a sharp row may add up to a little over 1
  query.effective_keys = std::exp(query.entropy);
  if (query.allowed > 1)
    query.normalised_entropy = query.entropy / std::log(static_cast<double>(query.allowed));
  for (detail::WantedKey& key : wanted) {
    if (key.key >= 0 && !row.allows(key.key)) key.key = -1;
    if (key.key >= 0) key.mass = row[key.key];
  }
  query.wanted = wanted;
  return query;
}

}  // namespace

void Telemetry::merge(const Telemetry& other) {
  check(heads.size() == other.heads.size(), "telemetry", "{} heads do not join with {}", heads.size(),
        other.heads.size());
  for (std::size_t i = 0; i < heads.size(); ++i) {
    const HeadTelemetry& a = heads[i];
    const HeadTelemetry& b = other.heads[i];
    check(a.offsets.size() == b.offsets.size() && a.keys.size() == b.keys.size() &&
              a.labels.size() == b.labels.size(),
          "telemetry", "{} offsets, {} keys and {} labels do not join with {}, {} and {}", a.offsets.size(),
          a.keys.size(), a.labels.size(), b.offsets.size(), b.keys.size(), b.labels.size());
  }
  for (std::size_t i = 0; i < heads.size(); ++i) detail::add_sums(heads[i], other.heads[i]);
  entropy = confidence = distance = argmax = allowed = masses = Array();
}

Telemetry telemetry_of(const Array& weights, const Mask& mask, const TelemetryOptions& options) {
  check(weights && weights.rank() == 4, "telemetry", "needs weights [batch, heads, n_q, n_k], not {}",
        weights.shape());
  const Shape shape = weights.shape();
  const std::int64_t heads = shape[1];
  const std::int64_t n_q = shape[2];
  const std::int64_t n_k = shape[3];
  const ResolvedMask resolved(mask, shape[0], heads, n_q, n_k, "telemetry");
  return dispatch(weights.dtype(), "telemetry", [&](auto zero) {
    using T = decltype(zero);
    Telemetry result = detail::empty_telemetry(options, shape[0], heads, n_q, n_k, weights.dtype());
    const double size = static_cast<double>(shape[0] * n_q * n_k);
    parallel_for(heads, 1, {.flops = 200 * size, .bytes = 4 * size},
                 [&](std::int64_t begin, std::int64_t end) {
                   std::vector<detail::WantedKey> wanted(detail::wanted_size(options));
                   for (std::int64_t head = begin; head < end; ++head) {
                     HeadTelemetry& sums = result.heads[static_cast<std::size_t>(head)];
                     for (std::int64_t b = 0; b < shape[0]; ++b) {
                       const std::int64_t* tokens =
                           options.tokens ? options.tokens.data<std::int64_t>() + b * n_k : nullptr;
                       for (std::int64_t q = 0; q < n_q; ++q) {
                         const std::int64_t index = (b * heads + head) * n_q + q;
                         const WeightRow<T> row(weights.data<T>() + index * n_k, resolved, b, head, q);
                         detail::find_wanted(options, b, q, n_q, n_k, wanted);
                         const auto query = finished(row, q + n_k - n_q, tokens, wanted);
                         detail::add_query(sums, query, detail::is_counted(options, b, q, n_q));
                         if (options.per_query) detail::store_query(result, index, query);
                       }
                     }
                   }
                 });
    return result;
  });
}

void check_telemetry(const TelemetryOptions& options, std::int64_t batch, std::int64_t n_q,
                     std::int64_t n_k) {
  for (const std::int64_t key : options.keys)
    check(key >= 0, "telemetry", "{} is not the place of a key", key);
  if (options.tokens) check_array(options.tokens, DType::i64, {batch, n_k}, "tokens");
  if (options.counted) check_array(options.counted, DType::u8, {batch, n_q}, "counted queries");
  if (!options.labels) return;
  const std::int64_t lists = options.labels.rank() == 3 ? options.labels.dim(0) : 1;
  check_array(options.labels, DType::i64, {lists, batch, n_q}, "labels");
  for (const std::int64_t label : options.labels.values<std::int64_t>()) {
    check(label >= -1 && label < n_k, "telemetry", "a label of {} is outside -1 … {}", label, n_k - 1);
  }
}

}  // namespace headlab
