// Head telemetry: what the rows of a pattern look like, without the pattern. The streaming kernel fills it in
// while it computes attention; telemetry_of() is its definition, from weights.
#pragma once

#include <cstdint>
#include <vector>

#include "framework/core/array.h"
#include "framework/ops/mask.h"

namespace headlab {

/// What is wanted beside the statistics that cost next to nothing. δ is a key's position less that of its
/// query when the last query is aligned with the last key.
struct TelemetryOptions {
  std::vector<std::int64_t> offsets = {};  ///< δ whose mass and argmax share are wanted
  std::vector<std::int64_t> keys = {};     ///< positions of keys whose mass is wanted: sinks
  Array labels = {};       ///< i64 [labels, B, n_q]: keys that queries are said to look at; −1: none
  Array tokens = {};       ///< i64 [B, n_k], for the mass on earlier copies of the query's own token
  Array counted = {};      ///< u8 [B, n_q], 1 = this query counts; absent: all. Labels count for themselves
  bool per_query = false;  ///< keep every query's numbers, too
};

/// Sums over queries with n_i ≥ 2 allowed keys; a bias of −∞ blocks. Means are sums over `queries`, 0 without
/// any.
struct HeadTelemetry {
  struct Mass {
    std::int64_t queries = 0;       ///< that may attend to the key
    std::int64_t argmax = 0;        ///< whose largest weight is there (ties: the lower key)
    double mass = 0;                ///< Σ weight
    double normalised_entropy = 0;  ///< Σ over these queries
    double mean_mass() const { return queries > 0 ? mass / static_cast<double>(queries) : 0; }
    double share() const {
      return queries > 0 ? static_cast<double>(argmax) / static_cast<double>(queries) : 0;
    }
  };
  std::int64_t queries = 0;
  double entropy = 0;                       ///< Σ H, nats: H = −Σ_j A ln A
  double normalised_entropy = 0;            ///< Σ H / ln n_i
  double effective_keys = 0;                ///< Σ e^H
  double confidence = 0;                    ///< Σ max_j A
  double distance = 0;                      ///< Σ_i Σ_j A |δ|
  std::vector<Mass> offsets, keys, labels;  ///< as TelemetryOptions lists them
  Mass duplicate;  ///< keys j before the query with its token, over queries that have such a key (no argmax)

  double mean(double HeadTelemetry::*sum) const {
    return queries > 0 ? this->*sum / static_cast<double>(queries) : 0;
  }
};

struct Telemetry {
  std::vector<HeadTelemetry> heads;
  /// With per_query, [B, heads, n_q] each, of the inputs' type but for the last two (i64); 0, and −1 for
  /// argmax, in rows without keys. Every query is there, counted or not.
  Array entropy, confidence, distance, argmax, allowed;
  /// With per_query, [B, heads, n_q, offsets + keys + labels]: weights, 0 where there is no such key.
  Array masses;

  /// Adds another batch's sums; arrays of single queries are dropped. Error: other heads or options.
  void merge(const Telemetry& other);
};

/// The definition, from weights [B, heads, n_q, n_k] before dropout, with what the mask allows. f64 sums by
/// example, then query: the same bits for any number of threads. Errors: see check_telemetry().
Telemetry telemetry_of(const Array& weights, const Mask& mask, const TelemetryOptions& options);

/// Errors: labels, tokens or counted of another type or shape; a label outside −1 … n_k − 1; a negative key.
void check_telemetry(const TelemetryOptions& options, std::int64_t batch, std::int64_t n_q, std::int64_t n_k);

}  // namespace headlab
