#include "framework/core/random.h"

#include <bit>
#include <cmath>
#include <numeric>
#include <utility>

#include "framework/core/check.h"

namespace headlab {

std::array<std::uint32_t, 4> philox(std::uint64_t key, std::uint64_t counter_high,
                                    std::uint64_t counter_low) {
  constexpr std::uint64_t m0 = 0xD2511F53;
  constexpr std::uint64_t m1 = 0xCD9E8D57;
  auto k0 = static_cast<std::uint32_t>(key);
  auto k1 = static_cast<std::uint32_t>(key >> 32);
  auto c0 = static_cast<std::uint32_t>(counter_low);
  auto c1 = static_cast<std::uint32_t>(counter_low >> 32);
  auto c2 = static_cast<std::uint32_t>(counter_high);
  auto c3 = static_cast<std::uint32_t>(counter_high >> 32);
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t p0 = m0 * c0;
    const std::uint64_t p1 = m1 * c2;
    c0 = static_cast<std::uint32_t>(p1 >> 32) ^ c1 ^ k0;
    c1 = static_cast<std::uint32_t>(p1);
    c2 = static_cast<std::uint32_t>(p0 >> 32) ^ c3 ^ k1;
    c3 = static_cast<std::uint32_t>(p0);
    k0 += 0x9E3779B9;
    k1 += 0xBB67AE85;
  }
  return {c0, c1, c2, c3};
}

namespace {
// The finaliser of SplitMix64 (Steele, Lea, Flood 2014).
std::uint64_t mix(std::uint64_t x) {
  x ^= x >> 30;
  x *= 0xBF58476D1CE4E5B9;
  x ^= x >> 27;
  x *= 0x94D049BB133111EB;
  return x ^ (x >> 31);
}
}  // namespace

std::uint64_t hash(std::string_view text) {
  std::uint64_t h = 0xCBF29CE484222325;
  for (const char c : text) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001B3;
  return mix(h);
}

std::uint64_t hash(std::uint64_t a, std::uint64_t b) {
  return mix(mix(a + 0x9E3779B97F4A7C15) ^ (b + 0x632BE59BD9B4E019));
}

Random::Random(std::uint64_t seed, Stream stream, std::uint64_t index)
    : key_(hash(seed, static_cast<std::uint64_t>(stream))), high_(index) {}

std::uint32_t Random::next_u32() {
  if (used_ == 4) {
    words_ = philox(key_, high_, low_++);
    used_ = 0;
  }
  return words_[static_cast<std::size_t>(used_++)];
}

std::uint64_t Random::next_u64() {
  const std::uint64_t high = next_u32();
  return high << 32 | next_u32();
}

double Random::uniform() { return static_cast<double>(next_u64() >> 11) * 0x1p-53; }

std::int64_t Random::below(std::int64_t n) {
  check(n >= 1, "random", "below({}) needs a positive bound", n);
  // Lemire's method: the high half of a 128-bit product, redrawn in the rare biased zone.
  const auto bound = static_cast<std::uint64_t>(n);
  const std::uint64_t threshold = (0 - bound) % bound;
  __extension__ using u128 = unsigned __int128;
  while (true) {
    const u128 product = static_cast<u128>(next_u64()) * bound;
    if (static_cast<std::uint64_t>(product) >= threshold) return static_cast<std::int64_t>(product >> 64);
  }
}

// 52 bits and a half: 53 would round the largest to 1.
double open_uniform(std::uint64_t bits) { return (static_cast<double>(bits >> 12) + 0.5) * 0x1p-52; }

double Random::normal() { return normal_quantile(open_uniform(next_u64())); }

std::vector<std::int64_t> Random::permutation(std::int64_t n) {
  check(n >= 0, "random", "permutation({}) needs a length from 0 on", n);
  std::vector<std::int64_t> order(static_cast<std::size_t>(n));
  std::iota(order.begin(), order.end(), 0);
  for (std::int64_t i = n - 1; i > 0; --i) {
    std::swap(order[static_cast<std::size_t>(i)], order[static_cast<std::size_t>(below(i + 1))]);
  }
  return order;
}

namespace {
// log(x) for positive normal x, about 1 ulp, without libm so that every machine draws the same bits:
// x = 2^e m with m in [√½, √2), log m = 2 atanh((m-1)/(m+1)).
double portable_log(double x) {
  int exponent = 0;
  double m = std::frexp(x, &exponent);  // exact
  if (m < 0.70710678118654752) {
    m *= 2;
    --exponent;
  }
  const double t = (m - 1) / (m + 1);
  const double t2 = t * t;
  double series = 0;
  for (int k = 23; k >= 3; k -= 2) series = (series + 1.0 / k) * t2;
  return exponent * 0.69314718055994531 + 2 * t * (1 + series);
}

template <std::size_t N>
double polynomial(const std::array<double, N>& coefficients, double x) {
  double value = 0;
  for (std::size_t i = N; i-- > 0;) value = value * x + coefficients[i];
  return value;
}
}  // namespace

double normal_quantile(double p) {
  check(p > 0 && p < 1, "normal_quantile", "p = {} is not in (0, 1)", p);
  const double q = p - 0.5;
  if (std::abs(q) <= 0.425) {
    static constexpr std::array<double, 8> a{
        3.3871328727963666080e0, 1.3314166789178437745e2, 1.9715909503065514427e3, 1.3731693765509461125e4,
        4.5921953931549871457e4, 6.7265770927008700853e4, 3.3430575583588128105e4, 2.5090809287301226727e3};
    static constexpr std::array<double, 8> b{1.0,
                                             4.2313330701600911252e1,
                                             6.8718700749205790830e2,
                                             5.3941960214247511077e3,
                                             2.1213794301586595867e4,
                                             3.9307895800092710610e4,
                                             2.8729085735721942674e4,
                                             5.2264952788528545610e3};
    const double r = 0.180625 - q * q;
    return q * polynomial(a, r) / polynomial(b, r);
  }
  double r = std::sqrt(-portable_log(q < 0 ? p : 1 - p));
  double value = 0;
  if (r <= 5) {
    static constexpr std::array<double, 8> c{1.42343711074968357734e0,  4.63033784615654529590e0,
                                             5.76949722146069140550e0,  3.64784832476320460504e0,
                                             1.27045825245236838258e0,  2.41780725177450611770e-1,
                                             2.27238449892691845833e-2, 7.74545014278341407640e-4};
    static constexpr std::array<double, 8> d{1.0,
                                             2.05319162663775882187e0,
                                             1.67638483018380384940e0,
                                             6.89767334985100004550e-1,
                                             1.48103976427480074590e-1,
                                             1.51986665636164571966e-2,
                                             5.47593808499534494600e-4,
                                             1.05075007164441684324e-9};
    r -= 1.6;
    value = polynomial(c, r) / polynomial(d, r);
  } else {
    static constexpr std::array<double, 8> e{6.65790464350110377720e0,  5.46378491116411436990e0,
                                             1.78482653991729133580e0,  2.96560571828504891230e-1,
                                             2.65321895265761230930e-2, 1.24266094738807843860e-3,
                                             2.71155556874348757815e-5, 2.01033439929228813265e-7};
    static constexpr std::array<double, 8> f{1.0,
                                             5.99832206555887937690e-1,
                                             1.36929880922735805310e-1,
                                             1.48753612908506148525e-2,
                                             7.86869131145613259100e-4,
                                             1.84631831751005468180e-5,
                                             1.42151175831644588870e-7,
                                             2.04426310338993978564e-15};
    r -= 5;
    value = polynomial(e, r) / polynomial(f, r);
  }
  return q < 0 ? -value : value;
}

}  // namespace headlab
