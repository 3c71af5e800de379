// Conformance kit: what the framework, the trainer and the laboratory rely on in a layer, checked one by one.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "framework/train/known_layer.h"

namespace headlab {

struct ConformanceCheck {
  std::string name;  ///< "gradient of weight"
  bool passed = false;
  std::string detail;  ///< what was seen; after a failure, what is wrong
};

/// Of one call forward and backward with the large inputs, on all threads.
struct LayerCost {
  double milliseconds = 0;       ///< median
  double flops = 0;              ///< those that headlab's kernels count
  std::int64_t allocations = 0;  ///< blocks asked of the pool
  std::int64_t parameters = 0;
};

struct Conformance {
  std::vector<ConformanceCheck> checks;
  LayerCost cost;  ///< zeros where the layer cannot be called
  bool passed() const;
};

/// In evaluation mode (dropout off):
/// - gradients of every input and parameter against central differences, in f64, first values shifted so that
///   no parameter is all 0 or 1;
/// - the f32 result and gradients within 1e-4 of the f64 ones;
/// - two calls give the same bits, and no call changes a parameter;
/// - saved to a safetensors file and loaded into a new layer, the same bits: nothing that matters is kept
///   outside of parameters;
/// - the same bits of result and gradients for 1, 2, 3 and 8 threads;
/// - a call like the one before needs no new memory and keeps none.
/// What the layer throws is a failed check. Sets the number of threads and puts it back: not to be called
/// inside a loop, nor beside other work. Error: no builder, or no call.
Conformance check_conformance(const KnownLayer& layer, std::uint64_t seed = 0);

}  // namespace headlab
