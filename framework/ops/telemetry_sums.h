// From the numbers of one finished query to the sums of its head: what telemetry_of() and the streaming
// kernel share, so that both count the same queries in the same way.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "framework/ops/telemetry.h"

namespace headlab::detail {

/// A key whose weight is wanted by itself.
struct WantedKey {
  std::int64_t key = -1;  ///< −1: there is no such key, or the query may not attend to it
  double mass = 0;        ///< its weight
};

/// One query of one head, after its last key.
struct QueryTelemetry {
  std::int64_t allowed = 0;  ///< n_i; with 0 the rest is as it is here
  std::int64_t argmax = -1;
  double entropy = 0;                 ///< −Σ A ln A over keys, ≥ 0
  double normalised_entropy = 0;      ///< H / ln n_i
  double effective_keys = 0;          ///< e^H
  double confidence = 0;              ///< max A
  double distance = 0;                ///< Σ A |δ|
  std::span<const WantedKey> wanted;  ///< offsets, then keys, then labels
  bool has_copies = false;            ///< an allowed key before the query has its token
  double copies = 0;                  ///< Σ A over these keys
};

/// How many wanted keys each query has.
std::size_t wanted_size(const TelemetryOptions& options);

/// The wanted keys of a query, of those in 0 … n_k − 1, whatever the mask says; masses are 0.
void find_wanted(const TelemetryOptions& options, std::int64_t example, std::int64_t query, std::int64_t n_q,
                 std::int64_t n_k, std::span<WantedKey> wanted);

/// Whether a query takes part in averages other than those of labels.
bool is_counted(const TelemetryOptions& options, std::int64_t example, std::int64_t query, std::int64_t n_q);

/// Sums over no query.
HeadTelemetry no_queries(const TelemetryOptions& options);

/// Adds a query; one with fewer than two allowed keys changes nothing. A query that is not counted adds to
/// labels alone.
void add_query(HeadTelemetry& sums, const QueryTelemetry& query, bool counted);

/// Adds the sums of other queries. Both are of the same options.
void add_sums(HeadTelemetry& sums, const HeadTelemetry& other);

/// Telemetry of no query: sums for each head and, with per_query, arrays of `dtype` that hold what a row
/// without keys has. Error: see check_telemetry().
Telemetry empty_telemetry(const TelemetryOptions& options, std::int64_t batch, std::int64_t heads,
                          std::int64_t n_q, std::int64_t n_k, DType dtype);

/// Writes a query into the arrays of single queries; row (example·heads + head)·n_q + query. Different rows
/// may be written by different threads.
void store_query(Telemetry& telemetry, std::int64_t row, const QueryTelemetry& query);

}  // namespace headlab::detail
