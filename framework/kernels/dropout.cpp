#include "framework/kernels/dropout.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

#include "framework/core/parallel.h"

namespace headlab::kernels {

namespace {

constexpr std::int64_t grain = 8192;
constexpr std::size_t batch = 16;  // philox calls side by side, one a lane

// The words of blocks first … first + 15, four each: philox() of framework/core/random.h, laid out so that
// the compiler makes vectors of it.
using Words = std::array<std::uint32_t, 4 * batch>;
void philox_batch(std::uint64_t key, std::uint64_t counter, std::uint64_t first, Words& words) {
  std::array<std::uint32_t, batch> c0, c1, c2, c3;
  for (std::size_t l = 0; l < batch; ++l) {
    c0[l] = static_cast<std::uint32_t>(first + l);
    c1[l] = static_cast<std::uint32_t>((first + l) >> 32U);
    c2[l] = static_cast<std::uint32_t>(counter);
    c3[l] = static_cast<std::uint32_t>(counter >> 32U);
  }
  auto k0 = static_cast<std::uint32_t>(key);
  auto k1 = static_cast<std::uint32_t>(key >> 32U);
  for (int round = 0; round < 10; ++round) {
    for (std::size_t l = 0; l < batch; ++l) {
      const std::uint64_t p0 = std::uint64_t{0xD2511F53} * c0[l];
      const std::uint64_t p1 = std::uint64_t{0xCD9E8D57} * c2[l];
      c0[l] = static_cast<std::uint32_t>(p1 >> 32U) ^ c1[l] ^ k0;
      c1[l] = static_cast<std::uint32_t>(p1);
      c2[l] = static_cast<std::uint32_t>(p0 >> 32U) ^ c3[l] ^ k1;
      c3[l] = static_cast<std::uint32_t>(p0);
    }
    k0 += 0x9E3779B9;
    k1 += 0xBB67AE85;
  }
  for (std::size_t l = 0; l < batch; ++l) {
    words[4 * l] = c0[l];
    words[4 * l + 1] = c1[l];
    words[4 * l + 2] = c2[l];
    words[4 * l + 3] = c3[l];
  }
}

// Calls body(i, count, words) for runs of elements, words[0] belonging to element i.
template <class Body>
void for_words(DropoutKey key, std::int64_t n, double bytes, const Body& body) {
  const Cost cost{.flops = 24, .bytes = bytes};
  parallel_for(n, grain, cost, [&](std::int64_t begin, std::int64_t end) {
    Words words;
    while (begin < end) {
      const std::uint64_t element = key.first_element + static_cast<std::uint64_t>(begin);
      const auto skip = static_cast<std::int64_t>(element % 4);
      philox_batch(key.key, key.counter, element / 4, words);
      const std::int64_t count = std::min(end - begin, static_cast<std::int64_t>(words.size()) - skip);
      body(begin, count, words.data() + skip);
      begin += count;
    }
  });
}

struct Rule {
  std::uint64_t threshold;
  double factor;
  explicit Rule(double p)
      : threshold(static_cast<std::uint64_t>(std::nearbyint(p * 0x1p32))), factor(p < 1 ? 1 / (1 - p) : 0) {}
};

}  // namespace

void dropout_factors(DropoutKey key, double p, float* factors, std::int64_t n) {
  const Rule rule(p);
  const auto kept = static_cast<float>(rule.factor);
  for_words(key, n, 4, [&](std::int64_t first, std::int64_t count, const std::uint32_t* words) {
    for (std::int64_t i = 0; i < count; ++i) factors[first + i] = words[i] < rule.threshold ? 0 : kept;
  });
}

template <class T>
void dropout(DropoutKey key, double p, const T* x, T* y, std::int64_t n, bool accumulate) {
  const Rule rule(p);
  const T factor = static_cast<T>(rule.factor);
  for_words(key, n, 3 * sizeof(T), [&](std::int64_t first, std::int64_t count, const std::uint32_t* words) {
    const T* from = x + first;
    T* to = y + first;
    for (std::int64_t i = 0; i < count; ++i) {
      const T value = words[i] < rule.threshold ? 0 : from[i] * factor;
      to[i] = accumulate ? to[i] + value : value;
    }
  });
}
template void dropout(DropoutKey, double, const float*, float*, std::int64_t, bool);
template void dropout(DropoutKey, double, const double*, double*, std::int64_t, bool);

}  // namespace headlab::kernels
