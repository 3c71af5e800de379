// Counts what is asked from operator new in this program.
#pragma once

#include <cstdint>

namespace headlab {

/// Bytes asked for so far.
std::int64_t bytes_allocated();

}  // namespace headlab
