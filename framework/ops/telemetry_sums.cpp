#include "framework/ops/telemetry_sums.h"

#include <cmath>

namespace headlab::detail {

namespace {

std::int64_t labels_of(const TelemetryOptions& options) { return options.labels ? options.labels.dim(0) : 0; }

void add_mass(HeadTelemetry::Mass& sums, double mass, double normalised_entropy) {
  ++sums.queries;
  sums.mass += mass;
  sums.normalised_entropy += normalised_entropy;
}

void add_mass(HeadTelemetry::Mass& sums, const HeadTelemetry::Mass& other) {
  sums.queries += other.queries;
  sums.argmax += other.argmax;
  sums.mass += other.mass;
  sums.normalised_entropy += other.normalised_entropy;
}

void put(Array& array, std::int64_t index, double value) {
  if (array.dtype() == DType::f32) {
    array.data<float>()[index] = static_cast<float>(value);
  } else {
    array.data<double>()[index] = value;
  }
}

}  // namespace

std::size_t wanted_size(const TelemetryOptions& options) {
  return options.offsets.size() + options.keys.size() + static_cast<std::size_t>(labels_of(options));
}

void find_wanted(const TelemetryOptions& options, std::int64_t example, std::int64_t query, std::int64_t n_q,
                 std::int64_t n_k, std::span<WantedKey> wanted) {
  auto* next = wanted.data();
  const auto put_key = [&](std::int64_t key) { *next++ = {key >= 0 && key < n_k ? key : -1, 0}; };
  for (const std::int64_t offset : options.offsets) put_key(query + n_k - n_q + offset);
  for (const std::int64_t key : options.keys) put_key(key);
  const std::int64_t labels = labels_of(options);
  if (labels == 0) return;
  const std::int64_t* label = options.labels.data<std::int64_t>() + example * n_q + query;
  const std::int64_t stride = options.labels.shape().product(1, 3);
  for (std::int64_t i = 0; i < labels; ++i) put_key(label[i * stride]);
}

bool is_counted(const TelemetryOptions& options, std::int64_t example, std::int64_t query, std::int64_t n_q) {
  return !options.counted || options.counted.data<std::uint8_t>()[example * n_q + query] != 0;
}

HeadTelemetry no_queries(const TelemetryOptions& options) {
  HeadTelemetry sums;
  sums.offsets.resize(options.offsets.size());
  sums.keys.resize(options.keys.size());
  sums.labels.resize(static_cast<std::size_t>(labels_of(options)));
  return sums;
}

void add_query(HeadTelemetry& sums, const QueryTelemetry& query, bool counted) {
  if (query.allowed < 2) return;
  const WantedKey* next = query.wanted.data();
  const auto add_list = [&](std::vector<HeadTelemetry::Mass>& list, bool add) {
    for (HeadTelemetry::Mass& mass : list) {
      const WantedKey wanted = *next++;
      if (!add || wanted.key < 0) continue;
      add_mass(mass, wanted.mass, query.normalised_entropy);
      if (wanted.key == query.argmax) ++mass.argmax;
    }
  };
  add_list(sums.offsets, counted);
  add_list(sums.keys, counted);
  add_list(sums.labels, true);
  if (!counted) return;
  ++sums.queries;
  sums.entropy += query.entropy;
  sums.normalised_entropy += query.normalised_entropy;
  sums.effective_keys += query.effective_keys;
  sums.confidence += query.confidence;
  sums.distance += query.distance;
  if (query.has_copies) add_mass(sums.duplicate, query.copies, query.normalised_entropy);
}

void add_sums(HeadTelemetry& sums, const HeadTelemetry& other) {
  sums.queries += other.queries;
  sums.entropy += other.entropy;
  sums.normalised_entropy += other.normalised_entropy;
  sums.effective_keys += other.effective_keys;
  sums.confidence += other.confidence;
  sums.distance += other.distance;
  const auto add_list = [](std::vector<HeadTelemetry::Mass>& to,
                           const std::vector<HeadTelemetry::Mass>& from) {
    for (std::size_t i = 0; i < to.size(); ++i) add_mass(to[i], from[i]);
  };
  add_list(sums.offsets, other.offsets);
  add_list(sums.keys, other.keys);
  add_list(sums.labels, other.labels);
  add_mass(sums.duplicate, other.duplicate);
}

Telemetry empty_telemetry(const TelemetryOptions& options, std::int64_t batch, std::int64_t heads,
                          std::int64_t n_q, std::int64_t n_k, DType dtype) {
  check_telemetry(options, batch, n_q, n_k);
  Telemetry result;
  result.heads.assign(static_cast<std::size_t>(heads), no_queries(options));
  if (!options.per_query) return result;
  const Shape shape{batch, heads, n_q};
  result.entropy = Array::zeros(shape, dtype);
  result.confidence = Array::zeros(shape, dtype);
  result.distance = Array::zeros(shape, dtype);
  result.argmax = Array::full(shape, -1, DType::i64);
  result.allowed = Array::zeros(shape, DType::i64);
  result.masses = Array::zeros(shape.inserted(3, static_cast<std::int64_t>(wanted_size(options))), dtype);
  return result;
}

void store_query(Telemetry& telemetry, std::int64_t row, const QueryTelemetry& query) {
  put(telemetry.entropy, row, query.entropy);
  put(telemetry.confidence, row, query.confidence);
  put(telemetry.distance, row, query.distance);
  telemetry.argmax.data<std::int64_t>()[row] = query.argmax;
  telemetry.allowed.data<std::int64_t>()[row] = query.allowed;
  const auto size = static_cast<std::int64_t>(query.wanted.size());
  for (std::int64_t i = 0; i < size; ++i) {
    put(telemetry.masses, row * size + i, query.wanted[static_cast<std::size_t>(i)].mass);
  }
}

}  // namespace headlab::detail
