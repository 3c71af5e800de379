// Between the streaming kernel, which knows arrays, and Telemetry. For attention.cpp only.
#pragma once

#include <cmath>
#include <utility>
#include <vector>

#include "framework/kernels/streaming_attention.h"
#include "framework/ops/telemetry_sums.h"

namespace headlab::detail {

/// Collects the kernel's blocks: each has sums of its own, which are added in order at the end.
template <class T>
class TelemetryCollector {
 public:
  TelemetryCollector(const TelemetryOptions& options, std::int64_t batch, std::int64_t heads,
                     std::int64_t n_q, std::int64_t n_k)
      : options_(options),
        telemetry_(empty_telemetry(options, batch, heads, n_q, n_k, kernels_dtype())),
        batch_(batch),
        heads_(heads),
        n_q_(n_q),
        n_k_(n_k),
        blocks_((n_q + kernels::attention_queries - 1) / kernels::attention_queries),
        sums_(static_cast<std::size_t>(batch * heads * blocks_), no_queries(options)),
        inverse_logs_(static_cast<std::size_t>(n_k + 1)) {
    for (std::size_t n = 2; n < inverse_logs_.size(); ++n)
      inverse_logs_[n] = static_cast<T>(1 / std::log(static_cast<double>(n)));
    if (options.tokens) {
      for (const std::int64_t token : options.tokens.template values<std::int64_t>()) {
        tokens_.push_back(static_cast<std::int32_t>(token));
      }
    }
    request_ = {.offsets = options_.offsets.data(),
                .offset_count = std::ssize(options_.offsets),
                .keys = options_.keys.data(),
                .key_count = std::ssize(options_.keys),
                .labels = options_.labels ? options_.labels.template data<std::int64_t>() : nullptr,
                .label_count = options_.labels ? options_.labels.dim(0) : 0,
                .tokens = tokens_.empty() ? nullptr : tokens_.data(),
                .counted = options_.counted ? options_.counted.template data<std::uint8_t>() : nullptr,
                .inverse_logs = inverse_logs_.data(),
                .done =
                    [](void* self, const kernels::BlockTelemetry<T>& block) {
                      static_cast<TelemetryCollector*>(self)->add(block);
                    },
                .context = this};
  }
  TelemetryCollector(const TelemetryCollector&) = delete;
  TelemetryCollector& operator=(const TelemetryCollector&) = delete;

  const kernels::TelemetryRequest<T>& request() const { return request_; }

  Telemetry finish() {
    for (std::int64_t b = 0; b < batch_; ++b) {
      for (std::int64_t h = 0; h < heads_; ++h) {
        for (std::int64_t block = 0; block < blocks_; ++block) {
          add_sums(telemetry_.heads[static_cast<std::size_t>(h)], sums_of(b, h, block));
        }
      }
    }
    return std::move(telemetry_);
  }

 private:
  static DType kernels_dtype() { return std::is_same_v<T, float> ? DType::f32 : DType::f64; }

  HeadTelemetry& sums_of(std::int64_t b, std::int64_t h, std::int64_t block) {
    return sums_[static_cast<std::size_t>((b * heads_ + h) * blocks_ + block)];
  }

  using Block = kernels::BlockTelemetry<T>;

  // The kernel has added the block's queries up as add_query() would, but for the type of the sums.
  void add(const Block& block) {
    HeadTelemetry& sums = sums_of(block.example, block.head, block.first_query / kernels::attention_queries);
    sums.queries = static_cast<std::int64_t>(block.counted);
    sums.entropy = static_cast<double>(block.entropy_sum);
    sums.normalised_entropy = static_cast<double>(block.normalised_entropy_sum);
    sums.effective_keys = static_cast<double>(block.effective_keys_sum);
    sums.confidence = static_cast<double>(block.confidence_sum);
    sums.distance = static_cast<double>(block.distance_sum);
    const auto mass_of = [](const kernels::WatchedSums<T>& watched) {
      return HeadTelemetry::Mass{.queries = static_cast<std::int64_t>(watched.queries),
                                 .argmax = static_cast<std::int64_t>(watched.hits),
                                 .mass = static_cast<double>(watched.mass),
                                 .normalised_entropy = static_cast<double>(watched.normalised_entropy)};
    };
    const kernels::WatchedSums<T>* next = block.watched;
    for (HeadTelemetry::Mass& mass : sums.offsets) mass = mass_of(*next++);
    for (HeadTelemetry::Mass& mass : sums.keys) mass = mass_of(*next++);
    for (HeadTelemetry::Mass& mass : sums.labels) mass = mass_of(*next++);
    sums.duplicate = mass_of(block.copies);
    if (options_.per_query) store(block);
  }

  void store(const Block& block) {
    std::vector<WantedKey> wanted(wanted_size(options_));
    for (std::int64_t i = 0; i < block.queries; ++i) {
      for (std::size_t w = 0; w < wanted.size(); ++w) {
        const T mass = block.masses[static_cast<std::int64_t>(w) * block.mass_step + i];
        wanted[w].mass = mass < 0 ? 0 : static_cast<double>(mass);
      }
      const QueryTelemetry one{.allowed = block.allowed[i],
                               .argmax = block.argmax[i],
                               .entropy = static_cast<double>(block.entropy[i]),
                               .confidence = static_cast<double>(block.confidence[i]),
                               .distance = static_cast<double>(block.distance[i]),
                               .wanted = wanted};
      store_query(telemetry_, (block.example * heads_ + block.head) * n_q_ + block.first_query + i, one);
    }
  }

  const TelemetryOptions& options_;
  Telemetry telemetry_;
  std::int64_t batch_, heads_, n_q_, n_k_, blocks_;
  std::vector<HeadTelemetry> sums_;  // [batch, heads, blocks]
  std::vector<T> inverse_logs_;      // 1 / ln n, for 0 and 1: 0
  std::vector<std::int32_t> tokens_;
  kernels::TelemetryRequest<T> request_;
};

}  // namespace headlab::detail
