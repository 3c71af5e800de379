#include "framework/kernels/peak.h"

#include <array>
#include <utility>

#include "framework/kernels/simd.h"

namespace headlab::kernels {

namespace {

// Sixteen lanes are one register or two. With factor and summand they must fit 32 or 16 registers.
constexpr int vectors = HEADLAB_AVX512 ? 12 : 6;
static_assert(vectors * (HEADLAB_AVX512 ? 1 : 2) >= peak_chains_at_least);

template <int... i>
float run(std::int64_t rounds, f32x16 factor, f32x16 summand, std::integer_sequence<int, i...>) {
  // All chains start differently: equal ones would be merged into one.
  std::array<f32x16, vectors> chain{broadcast(static_cast<float>(i + 1))...};
  for (; rounds > 0; --rounds) {
    ((chain[i] = fma(chain[i], factor, summand)), ...);
  }
  f32x16 total = zero();
  ((total = total + chain[i]), ...);
  return horizontal_sum(total);
}

}  // namespace

std::int64_t peak_flops_of_round() { return 2 * lanes * vectors; }

float peak_rounds(std::int64_t rounds, float factor, float summand) {
  // Two halves of a vector that are known to be equal would be one chain on AVX2.
  alignas(64) std::array<float, lanes> step;
  for (std::int64_t lane = 0; lane < lanes; ++lane) {
    step[static_cast<std::size_t>(lane)] = summand * static_cast<float>(lane + 1);
  }
  return run(rounds, broadcast(factor), load(step.data()), std::make_integer_sequence<int, vectors>{});
}

}  // namespace headlab::kernels
