// Rotary position embedding (Su et al. 2021): pairs of channels turn by an angle that grows with the
// position, so that q·k depends on the distance of two tokens alone.
#pragma once

#include <cstdint>

#include "framework/autograd/tensor.h"

namespace headlab {

/// Which channels of a head form a pair: (0, 1), (2, 3), … as in the paper, or (i, i + d/2) as in GPT-NeoX
/// and LLaMA.
enum class RotaryPairing : std::uint8_t { neighbours, halves };

struct RotaryOptions {
  std::int64_t heads = 1;      ///< heads to turn, from the left
  std::int64_t head_size = 0;  ///< width of a head; even
  std::int64_t width = 0;      ///< channels of a head that turn, from its first; even; 0: head_size
  double base = 10000;         ///< pair i turns by position · base^(−2i/width)
  RotaryPairing pairing = RotaryPairing::halves;
  std::int64_t first_position = 0;
};

/// x [B, T, width] with width ≥ heads·head_size: turns the first `width` channels of each of the first heads
/// of a row and copies the rest, so one call serves queries and keys of a packed projection. Angles are
/// computed in f64 and rounded once. Errors: an odd head size or width; a row that is too short.
Tensor rotary(const Tensor& x, const RotaryOptions& options);

}  // namespace headlab
