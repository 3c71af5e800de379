#include "framework/kernels/dropout.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "framework/core/parallel.h"
#include "framework/core/profile.h"
#include "framework/kernels/simd.h"

namespace headlab::kernels {

namespace {

constexpr std::int64_t grain = 8192;  // whole blocks
constexpr std::int64_t block = 4 * lanes;

// The words of elements 64·index … 64·index + 63: philox() of framework/core/random.h for sixteen counters.
using Words = std::array<std::int32_t, block>;
void make_words(DropoutKey key, std::uint64_t index, Words& words) {
  const auto low_half = [](std::uint64_t x) { return broadcast_int(static_cast<std::int32_t>(x)); };
  const auto high_half = [&](std::uint64_t x) { return low_half(x >> 32U); };
  alignas(64) static constexpr std::array<std::int32_t, lanes> count{0, 1, 2,  3,  4,  5,  6,  7,
                                                                     8, 9, 10, 11, 12, 13, 14, 15};
  const i32x16 m0 = broadcast_int(static_cast<std::int32_t>(0xD2511F53));
  const i32x16 m1 = broadcast_int(static_cast<std::int32_t>(0xCD9E8D57));
  // Sixteen counters never carry over: the first is a multiple of 16.
  i32x16 c0 = low_half(index * lanes) | load_int(count.data());
  i32x16 c1 = high_half(index * lanes);
  i32x16 c2 = low_half(key.counter);
  i32x16 c3 = high_half(key.counter);
  i32x16 k0 = low_half(key.key);
  i32x16 k1 = high_half(key.key);
  for (int round = 0; round < 10; ++round) {
    i32x16 low0, high0, low1, high1;
    multiply_wide(m0, c0, low0, high0);
    multiply_wide(m1, c2, low1, high1);
    c0 = high1 ^ c1 ^ k0;
    c1 = low1;
    c2 = high0 ^ c3 ^ k1;
    c3 = low0;
    k0 = k0 + low_half(0x9E3779B9);
    k1 = k1 + low_half(0xBB67AE85);
  }
  store_int(words.data(), c0);
  store_int(words.data() + lanes, c1);
  store_int(words.data() + 2 * lanes, c2);
  store_int(words.data() + 3 * lanes, c3);
}

// Calls body(i, count, words) for runs of elements, words[0] belonging to element i.
template <class Body>
void for_words(DropoutKey key, std::int64_t n, double bytes, const Body& body) {
  const Cost cost{.flops = 6, .bytes = bytes};
  parallel_for(n, grain, cost, [&](std::int64_t begin, std::int64_t end) {
    Words words;
    while (begin < end) {
      const std::uint64_t element = key.first_element + static_cast<std::uint64_t>(begin);
      const auto skip = static_cast<std::int64_t>(element % block);
      make_words(key, element / block, words);
      const std::int64_t count = std::min(end - begin, block - skip);
      body(begin, count, words.data() + skip);
      begin += count;
    }
  });
}

struct Rule {
  bool any;
  std::uint32_t last_dropped;
  double factor;
  explicit Rule(double p) : factor(p < 1 ? 1 / (1 - p) : 0) {
    const auto dropped = static_cast<std::uint64_t>(std::nearbyint(p * 0x1p32));  // of 2^32 words
    any = dropped > 0;
    last_dropped = static_cast<std::uint32_t>(dropped - 1);
  }
  bool drops(std::int32_t word) const { return any && static_cast<std::uint32_t>(word) <= last_dropped; }
};

}  // namespace

void dropout_factors(DropoutKey key, double p, float* factors, std::int64_t n) {
  const Rule rule(p);
  const auto kept = static_cast<float>(rule.factor);
  for_words(key, n, 4, [&](std::int64_t first, std::int64_t count, const std::int32_t* words) {
    for (std::int64_t i = 0; i < count; ++i) factors[first + i] = rule.drops(words[i]) ? 0 : kept;
  });
}

template <class T>
void dropout(DropoutKey key, double p, const T* x, T* y, std::int64_t n, bool accumulate) {
  const Rule rule(p);
  const T factor = static_cast<T>(rule.factor);
  profile::moved<T>(accumulate ? 3 : 2, n);
  for_words(key, n, 3 * sizeof(T), [&](std::int64_t first, std::int64_t count, const std::int32_t* words) {
    const T* from = x + first;
    T* to = y + first;
    for (std::int64_t i = 0; i < count; ++i) {
      const T scaled = from[i] * factor;
      const T value = rule.drops(words[i]) ? 0 : scaled;
      to[i] = accumulate ? to[i] + value : value;
    }
  });
}
template void dropout(DropoutKey, double, const float*, float*, std::int64_t, bool);
template void dropout(DropoutKey, double, const double*, double*, std::int64_t, bool);

}  // namespace headlab::kernels
