// Choosing the next token from logits: temperature, top-k, and one uniform number.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace headlab {

struct SamplingOptions {
  double temperature = 1;  ///< finite, >= 0; 0 takes the largest logit, ties to the lowest token
  std::int64_t top_k = 0;  ///< only the k largest logits, ties at the k-th place to the lower token; 0 or
                           ///< more than the vocabulary means all
};

/// The probability of every token, softmax(logits / temperature) over the top k, in f64; 0 for the others.
/// A logit of -inf is a token that cannot come. Tiny temperatures do not overflow.
/// Errors: no logits, a NaN or +inf among them (the message names the token), all of them -inf; a temperature
/// that is negative or not finite; a negative top_k.
std::vector<double> probabilities(std::span<const float> logits, const SamplingOptions& options);

/// The token whose slice of the cumulative distribution, in the order of tokens, holds `uniform`: the same
/// number always gives the same token, and a token of probability 0 never comes. Errors: as above, or
/// `uniform` outside [0, 1), so pass Random(seed, Stream::sampling, position).uniform().
std::int64_t sample(std::span<const float> logits, const SamplingOptions& options, double uniform);

}  // namespace headlab
