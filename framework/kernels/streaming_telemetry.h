// Telemetry of a block of queries, gathered while the forward pass streams over its keys. For
// streaming_attention.cpp only.
//
// Beside the running maximum m and Z = Σ e^(s − m) a query keeps U = Σ e^(s − m) (s − m), so that its entropy
// is ln Z − U/Z; when the maximum rises by d, U ← e^(−d) (U − d·Z). The score of a watched key is kept as it
// is until m and Z are known, so watching costs one load per query and key.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "framework/kernels/streaming_tile.h"

namespace headlab::kernels::detail {

template <class T>
class TelemetryBlock {
 public:
  TelemetryBlock(const AttentionProblem<T>& p, const TelemetryRequest<T>& request)
      : problem_(p),
        request_(request),
        counts_(p.mask.valid || p.mask.allow || p.mask.bias),
        raw_({request.watched(), attention_queries}, dtype_of<T>),
        watched_(static_cast<std::size_t>(request.watched())) {}

  void start(const QueryBlock<T>& block) {
    block_ = &block;
    for (PerQuery<T>* sums : {&weighted_, &distance_, &duplicate_, &allowed_}) sums->fill(T{0});
    argmax_.fill(-1);
    has_copy_.fill(T{0});
    std::fill_n(raw(), raw_.size(), blocked_score<T>);
    const std::int64_t aligned = block.first + problem_.n_k - problem_.n_q;  // the first query's key at δ = 0
    for (std::int64_t i = 0; i < attention_queries; ++i) {
      const auto at = static_cast<std::size_t>(i);
      aligned_[at] = static_cast<std::int32_t>(aligned + i);
      const bool own = request_.tokens && i < block.count && aligned + i >= 0;
      token_[at] = own ? request_.tokens[block.example * problem_.n_k + aligned + i] : -1;
    }
  }

  // The running maximum and where it is.
  struct MaximumPass {
    std::int32_t* where;
    T* next;
    Lanes<T> maximum;
    decltype(load_ints<T>(nullptr)) argmax;
    HEADLAB_INLINE Lanes<T> value(std::int64_t key, Lanes<T> s) {
      argmax = select(maximum < s, broadcast_ints<T>(static_cast<std::int32_t>(key)), argmax);
      maximum = max(maximum, s);
      return s;
    }
    // A watched key that none of the vector's queries may see counts as blocked.
    HEADLAB_INLINE Lanes<T> outside() const { return broadcast(blocked_score<T>); }
    HEADLAB_INLINE void done() {
      store(next, maximum);
      store_int(where, argmax);
    }
  };
  HEADLAB_INLINE MaximumPass maximum_pass(std::int64_t lane, Lanes<T> maximum, T* next) {
    std::int32_t* where = argmax_.data() + lane;
    return {where, next + lane, maximum, load_ints<T>(where)};
  }

  /// Keeps scores of watched keys.
  void watch(const Keys& keys, const T* scores) {
    const QueryBlock<T>& block = *block_;
    T* to = raw();
    for (std::int64_t w = 0; w < request_.offset_count; ++w, to += attention_queries) {
      const std::int64_t base = aligned_[0] + request_.offsets[w];  // the first query's key
      const std::int64_t last = std::min(block.count, keys.last - base);
      for (std::int64_t i = std::max<std::int64_t>(0, keys.first - base); i < last; ++i) {
        to[i] = scores[(base + i - keys.first) * block.lanes + i];
      }
    }
    for (std::int64_t w = 0; w < request_.key_count; ++w, to += attention_queries) {
      const std::int64_t key = request_.keys[w];
      if (key < keys.first || key >= keys.last) continue;
      std::copy_n(scores + (key - keys.first) * block.lanes, block.count, to);
    }
    const std::int64_t* label = request_.labels + block.example * problem_.n_q + block.first;
    for (std::int64_t w = 0; w < request_.label_count; ++w, to += attention_queries) {
      for (std::int64_t i = 0; i < block.count; ++i) {
        if (label[i] >= keys.first && label[i] < keys.last) {
          to[i] = scores[(label[i] - keys.first) * block.lanes + i];
        }
      }
      label += problem_.batch * problem_.n_q;
    }
  }

  /// Scores → e^(s − m) for one vector of queries; returns their sum. `total` is Z under the old maximum.
  HEADLAB_INLINE Lanes<T> weigh(std::int64_t lane, const Keys& keys, bool masked, T* scores, Lanes<T> before,
                                Lanes<T> shift, Lanes<T> c, Lanes<T> total) {
    const auto none = broadcast(T{0});
    const auto one = broadcast(T{1});
    const auto blocked = broadcast(blocked_score<T>);
    auto sum = none;
    auto weighted = none;
    auto distance = none;
    auto allowed = none;
    const auto aligned = to_float(load_ints<T>(aligned_.data() + lane));
    if (request_.tokens) store(duplicate_.data() + lane, load(duplicate_.data() + lane) * c);
    const Keys part = masked ? block_->part(keys, lane) : keys;
    if (masked) fill_around(*block_, keys, part, scores + lane, none);
    for (std::int64_t j = part.first; j < part.last; ++j) {
      T* at = scores + (j - keys.first) * block_->lanes + lane;
      const auto s = load(at);
      const auto t = s - shift;
      const auto e = select(s == blocked, none, exp(t));
      store(at, e);
      sum = sum + e;
      weighted = select(e == none, weighted, fma(e, t, weighted));
      distance = fma(e, abs(broadcast(static_cast<T>(j)) - aligned), distance);
      if (counts_) allowed = allowed + select(s == blocked, none, one);
      if (request_.tokens) add_copy(lane, j, s, e);
    }
    const auto rescaled = c * fma(before - shift, total, load(weighted_.data() + lane));
    store(weighted_.data() + lane, select(before == blocked, none, rescaled) + weighted);
    store(distance_.data() + lane, fma(load(distance_.data() + lane), c, distance));
    if (counts_) store(allowed_.data() + lane, load(allowed_.data() + lane) + allowed);
    return sum;
  }

  /// `own_maximum` and `own_total` are over keys, `maximum` and `total` with the sink, c = e^(own − maximum).
  HEADLAB_INLINE void finish(std::int64_t lane, Lanes<T> own_maximum, Lanes<T> own_total, Lanes<T> maximum,
                             Lanes<T> total, Lanes<T> c, decltype(Lanes<T>{} == Lanes<T>{}) empty) {
    const auto none = broadcast(T{0});
    const auto blocked = broadcast(blocked_score<T>);
    const auto r = broadcast(T{1}) / total;
    const auto u = c * fma(own_maximum - maximum, own_total, load(weighted_.data() + lane));
    const auto h = (c * own_total * log(total) - u) * r;
    const auto entropy = select(empty, none, max(h, none));
    store(entropy_.data() + lane, entropy);
    store(effective_keys_.data() + lane, exp(entropy));
    store(confidence_.data() + lane, select(empty, none, c * r));
    store(distance_.data() + lane, select(empty, none, load(distance_.data() + lane) * c * r));
    const auto copies = load(has_copy_.data() + lane);
    const auto duplicate = load(duplicate_.data() + lane) * c * r;
    store(duplicate_.data() + lane, select((copies == none) | empty, broadcast(T{-1}), duplicate));
    for (std::int64_t w = 0; w < request_.watched(); ++w) {
      T* at = raw() + w * attention_queries + lane;
      const auto s = load(at);
      store(at, select((s == blocked) | empty, broadcast(T{-1}), exp(s - maximum) * r));
    }
  }

  void report() {
    const QueryBlock<T>& block = *block_;
    PerQuery<std::int32_t> allowed;
    const std::uint8_t* counted = request_.counted;
    if (counted) counted += block.example * problem_.n_q + block.first;
    takes_part_.fill(T{0});
    counted_.fill(T{0});
    normalised_.fill(T{0});
    for (std::size_t i = 0; i < static_cast<std::size_t>(block.count); ++i) {
      allowed[i] = counts_ ? static_cast<std::int32_t>(allowed_[i])
                           : std::max(0, block.last_key[i] - block.first_key[i]);
      if (allowed[i] == 0) argmax_[i] = -1;
      if (allowed[i] < 2) continue;
      normalised_[i] = entropy_[i] * request_.inverse_logs[allowed[i]];
      takes_part_[i] = 1;
      if (!counted || counted[i] != 0) counted_[i] = 1;
    }
    BlockTelemetry<T> result{.example = block.example,
                             .head = block.head,
                             .first_query = block.first,
                             .queries = block.count,
                             .counted = sum_of(counted_),
                             .entropy_sum = sum_of(entropy_),
                             .normalised_entropy_sum = sum_of(normalised_),
                             .effective_keys_sum = sum_of(effective_keys_),
                             .confidence_sum = sum_of(confidence_),
                             .distance_sum = sum_of(distance_),
                             .watched = watched_.data(),
                             .copies = {},
                             .entropy = entropy_.data(),
                             .confidence = confidence_.data(),
                             .distance = distance_.data(),
                             .argmax = argmax_.data(),
                             .allowed = allowed.data(),
                             .masses = raw(),
                             .mass_step = attention_queries};
    sum_watched();
    if (request_.tokens) {
      result.copies =
          sum_masses(duplicate_.data(), counted_, [](std::int64_t) { return broadcast_ints<T>(-2); });
    }
    request_.done(request_.context, result);
  }

 private:
  // Mass on keys before the query that hold its token.
  HEADLAB_INLINE void add_copy(std::int64_t lane, std::int64_t j, Lanes<T> s, Lanes<T> e) {
    const auto none = broadcast(T{0});
    const std::int32_t token = request_.tokens[block_->example * problem_.n_k + j];
    const auto copy =
        (load_ints<T>(token_.data() + lane) == broadcast_ints<T>(token)) &
        (broadcast_ints<T>(static_cast<std::int32_t>(j)) < load_ints<T>(aligned_.data() + lane)) &
        ~(s == broadcast(blocked_score<T>));
    T* mass = duplicate_.data() + lane;
    store(mass, load(mass) + select(copy, e, none));
    T* has = has_copy_.data() + lane;
    store(has, select(copy, broadcast(T{1}), load(has)));
  }

  // Over the queries that count.
  T sum_of(const PerQuery<T>& x) const {
    auto sum = broadcast(T{0});
    for (std::int64_t lane = 0; lane < block_->lanes; lane += width<T>) {
      const auto counts = load(counted_.data() + lane) != broadcast(T{0});
      sum = sum + select(counts, load(x.data() + lane), broadcast(T{0}));
    }
    return horizontal_sum(sum);
  }

  /// Masses ≥ 0 of the queries in `which`; key_of(lane) gives the watched keys of a vector.
  template <class KeyOf>
  WatchedSums<T> sum_masses(const T* masses, const PerQuery<T>& which, const KeyOf& key_of) const {
    const auto none = broadcast(T{0});
    const auto one = broadcast(T{1});
    auto queries = none, hits = none, mass = none, entropy = none;
    for (std::int64_t lane = 0; lane < block_->lanes; lane += width<T>) {
      const auto m = load(masses + lane);
      const auto there = ~(m < none) & (load(which.data() + lane) != none);
      const auto hit = there & (load_ints<T>(argmax_.data() + lane) == key_of(lane));
      queries = queries + select(there, one, none);
      hits = hits + select(hit, one, none);
      mass = mass + select(there, m, none);
      entropy = entropy + select(there, load(normalised_.data() + lane), none);
    }
    return {horizontal_sum(queries), horizontal_sum(hits), horizontal_sum(mass), horizontal_sum(entropy)};
  }

  void sum_watched() {
    const QueryBlock<T>& block = *block_;
    std::size_t w = 0;
    const auto masses = [&] { return raw() + static_cast<std::int64_t>(w) * attention_queries; };
    alignas(64) PerQuery<std::int32_t> keys;
    for (std::int64_t n = 0; n < request_.offset_count; ++n, ++w) {
      constexpr std::int64_t far = std::int64_t{1} << 30;  // further than any two tokens
      const auto offset = static_cast<std::int32_t>(std::clamp(request_.offsets[n], -far, far));
      for (std::size_t i = 0; i < keys.size(); ++i) keys[i] = aligned_[i] + offset;
      watched_[w] =
          sum_masses(masses(), counted_, [&](std::int64_t lane) { return load_ints<T>(keys.data() + lane); });
    }
    for (std::int64_t n = 0; n < request_.key_count; ++n, ++w) {
      const auto key = static_cast<std::int32_t>(request_.keys[n]);
      watched_[w] = sum_masses(masses(), counted_, [&](std::int64_t) { return broadcast_ints<T>(key); });
    }
    const std::int64_t* label = request_.labels + block.example * problem_.n_q + block.first;
    for (std::int64_t n = 0; n < request_.label_count; ++n, ++w, label += problem_.batch * problem_.n_q) {
      keys.fill(-2);
      for (std::size_t i = 0; i < static_cast<std::size_t>(block.count); ++i) {
        keys[i] = static_cast<std::int32_t>(label[i]);
      }
      watched_[w] = sum_masses(masses(), takes_part_,
                               [&](std::int64_t lane) { return load_ints<T>(keys.data() + lane); });
    }
  }

  T* raw() { return raw_.template data<T>(); }

  const AttentionProblem<T>& problem_;
  const TelemetryRequest<T>& request_;
  const QueryBlock<T>* block_ = nullptr;
  bool counts_;
  Array raw_;  // [watched, attention_queries]: scores, then weights
  alignas(64) PerQuery<T> weighted_, distance_, duplicate_, has_copy_, allowed_, entropy_, effective_keys_,
      confidence_, normalised_, takes_part_, counted_;
  std::vector<WatchedSums<T>> watched_;
  alignas(64) PerQuery<std::int32_t> argmax_, aligned_, token_;
};

}  // namespace headlab::kernels::detail
