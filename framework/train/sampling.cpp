#include "framework/train/sampling.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "framework/core/check.h"

namespace headlab {

namespace {

void validate(std::span<const float> logits, const SamplingOptions& options) {
  check(std::isfinite(options.temperature) && options.temperature >= 0, "sampling",
        "temperature {} is not a finite number from 0 on", options.temperature);
  check(options.top_k >= 0, "sampling", "top-k {} is negative (allowed: 0 for all, or 1 and more)",
        options.top_k);
  check(!logits.empty(), "sampling", "the vocabulary is empty");
  for (std::size_t token = 0; token < logits.size(); ++token) {
    const float logit = logits[token];
    check(!(std::isnan(logit) || (std::isinf(logit) && logit > 0)), "sampling", "the logit of token {} is {}",
          token, logit);
  }
}

/// True for the tokens that may come: the k largest, ties to the lower token.
std::vector<bool> kept_tokens(std::span<const float> logits, std::int64_t k) {
  if (k == 0 || k >= std::ssize(logits)) return std::vector<bool>(logits.size(), true);
  std::vector<std::size_t> order(logits.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::nth_element(order.begin(), order.begin() + (k - 1), order.end(), [&](std::size_t a, std::size_t b) {
    return logits[a] > logits[b] || (logits[a] == logits[b] && a < b);
  });
  std::vector<bool> kept(logits.size(), false);
  for (std::int64_t i = 0; i < k; ++i) kept[order[static_cast<std::size_t>(i)]] = true;
  return kept;
}

}  // namespace

std::vector<double> probabilities(std::span<const float> logits, const SamplingOptions& options) {
  validate(logits, options);
  const auto largest = std::max_element(logits.begin(), logits.end());  // the first of equals
  check(!std::isinf(*largest), "sampling", "all {} logits are -inf, no token can come", logits.size());
  std::vector<double> p(logits.size(), 0.0);
  if (options.temperature == 0) {
    p[static_cast<std::size_t>(largest - logits.begin())] = 1;
    return p;
  }
  const std::vector<bool> kept = kept_tokens(logits, options.top_k);
  double sum = 0;
  for (std::size_t token = 0; token < p.size(); ++token) {
    if (!kept[token]) continue;
    // The difference is taken before the division: it is 0 or negative, so that a tiny temperature can only
    // send it to -inf, and exp to 0. The largest logit gives 1, hence sum >= 1.
    p[token] =
        std::exp((static_cast<double>(logits[token]) - static_cast<double>(*largest)) / options.temperature);
    sum += p[token];
  }
  for (double& value : p) value /= sum;
  return p;
}

std::int64_t sample(std::span<const float> logits, const SamplingOptions& options, double uniform) {
  check(uniform >= 0 && uniform < 1, "sampling", "the uniform number {} is not in [0, 1)", uniform);
  const std::vector<double> p = probabilities(logits, options);
  double cumulative = 0;
  std::size_t last = 0;
  for (std::size_t token = 0; token < p.size(); ++token) {
    if (p[token] == 0) continue;
    cumulative += p[token];
    last = token;
    if (uniform < cumulative) break;
  }
  // Rounding can leave the whole sum a little under `uniform`: then the last token that can come.
  return static_cast<std::int64_t>(last);
}

}  // namespace headlab
