// One number that says whether this machine trains the same bits as every other.
#pragma once

#include <cstdint>

#include "framework/train/catalogue.h"

namespace headlab {

/// Raised whenever trainings give other numbers than before; sweeps keep results by it.
constexpr int numbers_version = 2;

/// What verify_checksum() gives at this numbers_version with headlab's own models, on every x86-64 machine
/// with fused multiply-add, for any number of threads and with every compiler.
constexpr std::uint64_t expected_checksum = 0xd7678b3f74d306ba;

/// Trains three small models for some hundred steps (learned positions with MLP, dropout and accumulation; an
/// encoder–decoder; rotary positions) and returns a hash of the bits of all losses. A few seconds on one
/// core.
std::uint64_t verify_checksum(const ModelBuilder& build);

}  // namespace headlab
