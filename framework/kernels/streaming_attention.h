// Attention in tiles of keys, with a running maximum and sum per query (Milakov & Gimelshein 2018; Dao et al.
// 2022): no array of n_q × n_k, forward or backward.
//
// Order of sums in f32, part of the promise of equal bits: keys are cut into tiles of attention_keys from key
// 0 on, whatever the queries. Within a tile one chain per query, keys ascending, starts from 0; tiles are
// added in ascending order. A blocked key adds nothing to a chain. So a query's row depends on that query, on
// the keys it may see and on nothing else. Queries are cut into blocks of attention_queries, in whose order
// the gradients of keys and values are summed, block by block and within a group of heads head by head.
#pragma once

#include <cstdint>

#include "framework/kernels/dropout.h"

namespace headlab::kernels {

constexpr std::int64_t attention_keys = 128;
constexpr std::int64_t attention_queries = 64;

/// Heads side by side in rows: row i of head h of example b starts at data + b·batch + i·row + h·width.
template <class T>
struct HeadRows {
  T* data = nullptr;
  std::int64_t batch = 0, row = 0, width = 0;
  T* at(std::int64_t b, std::int64_t h, std::int64_t i) const {
    return data + b * batch + i * row + h * width;
  }
};

/// What queries may attend to. Absent pointers block nothing and add nothing.
template <class T>
struct AllowedKeys {
  const std::int32_t* first = nullptr;  ///< [examples, n_q]: keys before it are blocked, …
  const std::int32_t* last = nullptr;   ///< … and from this one on
  std::int64_t range_example = 0;       ///< from one example to the next in both
  const std::uint8_t* valid = nullptr;  ///< [batch, n_k], 0 blocks a key for all
  const std::uint8_t* allow = nullptr;  ///< [.., .., n_q, n_k], 0 blocks
  std::int64_t allow_example = 0, allow_head = 0;
  const T* bias = nullptr;  ///< [.., .., n_q, n_k], added to scores; −∞ blocks
  std::int64_t bias_example = 0, bias_head = 0;

  /// Whether a query may be kept from a key at all.
  bool may_block() const { return first || valid || allow || bias; }
};

template <class T>
struct AttentionProblem {
  std::int64_t batch = 0, heads = 1, kv_heads = 1, n_q = 0, n_k = 0, d_k = 0, d_v = 0;
  HeadRows<const T> q, k, v;
  T scale = 1;
  T softcap = 0;                   ///< 0: off
  const T* offset_bias = nullptr;  ///< [heads, n_q + n_k − 1], entry j − i + n_q − 1
  const T* sink = nullptr;         ///< [heads]
  AllowedKeys<T> mask;
  double dropout = 0;
  DropoutKey dropout_key = {};

  std::int64_t group() const { return heads / kv_heads; }
  /// Numbers of q, k, v and the result.
  std::int64_t numbers() const { return batch * (heads * n_q + kv_heads * n_k) * (d_k + d_v); }
  std::int64_t tiles() const { return (n_k + attention_keys - 1) / attention_keys; }
  /// Distances of a query and a key that occur.
  std::int64_t offsets() const { return n_q + n_k > 0 ? n_q + n_k - 1 : 0; }
  std::int64_t blocks() const { return (n_q + attention_queries - 1) / attention_queries; }
  bool allows(std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j) const;
};

/// Sums over those of a block's queries that count and may see a watched key.
template <class T>
struct WatchedSums {
  T queries = 0;
  T hits = 0;  ///< queries whose argmax is the watched key
  T mass = 0;
  T normalised_entropy = 0;
};

/// What a finished block of queries looks like. Rows without allowed keys are all 0, argmax −1.
template <class T>
struct BlockTelemetry {
  std::int64_t example, head, first_query, queries;
  /// Sums over the queries that count and have n_i ≥ 2; of labels over all with n_i ≥ 2.
  T counted, entropy_sum, normalised_entropy_sum, effective_keys_sum, confidence_sum, distance_sum;
  const WatchedSums<T>* watched;  ///< [watched]
  WatchedSums<T> copies;          ///< of `duplicate`, without hits
  const T* entropy;               ///< [queries], nats
  const T* confidence;            ///< largest weight
  const T* distance;              ///< Σ A |δ|
  const std::int32_t* argmax;
  const std::int32_t* allowed;  ///< n_i
  const T* masses;  ///< [watched, mass_step] weights of watched keys, −1 where a query may not see it
  std::int64_t mass_step;
};

/// Which keys are watched, query by query: first all offsets, then all keys, then all labels.
template <class T>
struct TelemetryRequest {
  const std::int64_t* offsets = nullptr;
  std::int64_t offset_count = 0;
  const std::int64_t* keys = nullptr;
  std::int64_t key_count = 0;
  const std::int64_t* labels = nullptr;  ///< [label_count, batch, n_q], −1: none
  std::int64_t label_count = 0;
  const std::int32_t* tokens = nullptr;   ///< [batch, n_k], for the mass on earlier copies of a query's token
  const std::uint8_t* counted = nullptr;  ///< [batch, n_q], 1 = counts; absent: all do
  const T* inverse_logs = nullptr;        ///< [n_k + 1], 1 / ln n from n = 2 on, before that 0
  /// Called once per block of queries, from several threads.
  void (*done)(void* context, const BlockTelemetry<T>&) = nullptr;
  void* context = nullptr;

  std::int64_t watched() const { return offset_count + key_count + label_count; }
};

/// out [n_q, d_v] per head, log_sum_exp [batch, heads, n_q] of the scores (−∞ in rows without allowed keys).
/// Parallel over batch × heads × blocks of queries. T is float or double; f64 exists to check gradients.
template <class T>
void streaming_attention(const AttentionProblem<T>& problem, const HeadRows<T>& out, T* log_sum_exp,
                         const TelemetryRequest<T>* telemetry = nullptr);

/// Where gradients go; all are overwritten.
template <class T>
struct AttentionGradients {
  HeadRows<T> q, k, v;
  T* scores = nullptr;       ///< [batch, heads, n_q, n_k] of scores with bias, when wanted
  T* offset_bias = nullptr;  ///< [heads, n_q + n_k − 1], when wanted
  T* sink = nullptr;         ///< [heads], when wanted
};

/// One pass over the tiles with five products, recomputing weights from log_sum_exp. Parallel over batch ×
/// key/value heads and, where that makes fewer than eight pieces, over groups of tiles with dq of their own,
/// merged in order.
template <class T>
void streaming_attention_backward(const AttentionProblem<T>& problem, const HeadRows<const T>& out,
                                  const T* log_sum_exp, const HeadRows<const T>& dout,
                                  const AttentionGradients<T>& gradients);

}  // namespace headlab::kernels
