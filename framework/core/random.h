// Counter-based random numbers (Philox4x32-10, Salmon et al. 2011): every number is a function of (seed,
// stream, path, position), so order of drawing, threads and resuming cannot change it. The same bits on every
// machine: no libm.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

namespace headlab {

/// What a number is for. Different streams of one seed are independent.
enum class Stream : std::uint64_t {
  initial_weights = 1,
  data = 2,
  dropout = 3,
  evaluation = 4,
  sampling = 5,
  statistics = 6
};

/// Four 32-bit words from a 64-bit key and a 128-bit counter.
std::array<std::uint32_t, 4> philox(std::uint64_t key, std::uint64_t counter_high, std::uint64_t counter_low);

/// A 64-bit hash of a text (FNV-1a, finalised), and of two numbers. Stable for ever: files depend on it.
std::uint64_t hash(std::string_view text);
std::uint64_t hash(std::uint64_t a, std::uint64_t b);

/// The standard normal quantile of p in (0, 1), from Wichura's AS 241 (PPND16), relative error about 1e-16.
double normal_quantile(double p);

/// A sequence of numbers: a value type, cheap to make, e.g. Random(seed, Stream::data, step). Not
/// thread-safe; make one per use.
class Random {
 public:
  /// `index` separates sequences of the same stream: a batch number, or hash("blocks.0.attn.q").
  Random(std::uint64_t seed, Stream stream, std::uint64_t index = 0);

  std::uint32_t next_u32();
  std::uint64_t next_u64();
  /// Uniform in [0, 1), 53 bits.
  double uniform();
  /// Uniform in 0 … n-1 without bias. Error: n < 1.
  std::int64_t below(std::int64_t n);
  /// Standard normal.
  double normal();
  /// True with probability p.
  bool bernoulli(double p) { return uniform() < p; }
  /// 0 … n-1 in random order. Error: n < 0.
  std::vector<std::int64_t> permutation(std::int64_t n);

 private:
  std::uint64_t key_;
  std::uint64_t high_;
  std::uint64_t low_ = 0;
  std::array<std::uint32_t, 4> words_{};
  int used_ = 4;
};

/// Uniform in (0, 1) (never 0 or 1) from 64 random bits.
double open_uniform(std::uint64_t bits);

}  // namespace headlab
