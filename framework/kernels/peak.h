// The machine's limit: f32 multiply-adds that never leave the registers.
#pragma once

#include <cstdint>

namespace headlab::kernels {

/// Enough independent chains for two units with a latency of four cycles and more, few enough for the
/// registers.
constexpr std::int64_t peak_chains_at_least = 8;

/// Floating-point operations of one round: two a lane of each chain.
std::int64_t peak_flops_of_round();

/// Runs `rounds` of x = fma(x, factor, summand) in every chain, from a value of its own, on the caller's
/// thread. Returns the sum of all lanes of all chains, so that none can be left out: use it. Not subnormal
/// with a factor near 1.
float peak_rounds(std::int64_t rounds, float factor, float summand);

}  // namespace headlab::kernels
