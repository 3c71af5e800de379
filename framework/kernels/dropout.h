// Dropping numbers at random. Whether element e is kept is a function of (key, counter, e) alone, so a
// pattern is made again wherever it is needed, never stored, and does not depend on threads or on how a batch
// is cut.
#pragma once

#include <cstdint>

namespace headlab {

/// What a pattern depends on. `key` and `counter` say which (seed, path of the layer, step); `first_element`
/// is the index of the array's first element within it, for example (number of the first example among all
/// examples of the step) · (elements of one example).
struct DropoutKey {
  std::uint64_t key = 0;
  std::uint64_t counter = 0;
  std::uint64_t first_element = 0;
};

namespace kernels {

// Preconditions: 0 <= p <= 1, and elements below 2^63.
//
// Elements come in blocks of 64, sixteen counters a block: element 64 k + 16 j + l belongs to word j of
// philox(key, counter, 16 k + l), and is dropped when that word is below p·2^32 (rounded).

/// factors[i] = 0 for dropped elements, 1/(1-p) for the others.
void dropout_factors(DropoutKey key, double p, float* factors, std::int64_t n);

/// y[i] = [y[i] +] x[i] · factor; exactly 0 for a dropped x[i], NaN included. T is float or double. Forward
/// and backward are the same function.
template <class T>
void dropout(DropoutKey key, double p, const T* x, T* y, std::int64_t n, bool accumulate = false);

}  // namespace kernels
}  // namespace headlab
