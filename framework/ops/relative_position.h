// Biases of scores that depend on the distance of key and query alone, for AttentionOptions::offset_bias.
#pragma once

#include <cstdint>
#include <vector>

#include "framework/autograd/tensor.h"

namespace headlab {

/// ALiBi's slopes (Press et al. 2022): 2^(−8i/heads), i = 1 … heads, where heads is a power of two; else
/// those of the next lower power p, followed by every other slope of 2p heads, as published. Error: heads
/// < 1.
std::vector<double> alibi_slopes(std::int64_t heads);

/// −slope·|δ|, computed in f64 and rounded once: [heads, n_q + n_k − 1]. Not differentiable.
Tensor alibi_bias(std::int64_t heads, std::int64_t n_q, std::int64_t n_k, DType dtype);

/// T5's buckets (Raffel et al. 2020): one each for small distances, then logarithmic ones up to
/// max_distance, beyond it the last. Bidirectional: half of them for keys behind the query; else keys ahead
/// share bucket 0. Errors: fewer than 2 buckets (bidirectional: an odd number, or fewer than 4); max_distance
/// not over the number of exact buckets.
struct RelativeBuckets {
  std::int64_t buckets = 32;
  std::int64_t max_distance = 128;
  bool bidirectional = true;
};
std::int64_t relative_bucket(std::int64_t offset, const RelativeBuckets& options);

/// table [buckets, heads] → [heads, n_q + n_k − 1], differentiable in the table.
Tensor relative_bias(const Tensor& table, std::int64_t n_q, std::int64_t n_k, const RelativeBuckets& options);

}  // namespace headlab
