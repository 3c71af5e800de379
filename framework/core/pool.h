// The buffer pool: 64-byte aligned blocks, kept for reuse from step to step, with counters that tests can
// read.
#pragma once

#include <cstddef>
#include <cstdint>

namespace headlab::pool {

struct Counters {
  std::int64_t live_blocks = 0;   ///< blocks handed out and not returned
  std::int64_t live_bytes = 0;    ///< bytes asked for in those blocks
  std::int64_t peak_bytes = 0;    ///< largest live_bytes since reset_peak()
  std::int64_t cached_bytes = 0;  ///< bytes held for reuse
  std::int64_t allocations = 0;   ///< allocate() calls so far
  std::int64_t from_system = 0;   ///< those of them that the cache could not serve
};

/// A block of at least `bytes` bytes, or nullptr when the system has none even after trim(). Contents are
/// undefined (NaN where HEADLAB_POISON is set). Thread-safe; a block may be returned by another thread.
void* allocate(std::int64_t bytes);
void release(void* block) noexcept;

Counters counters();
void reset_peak();
/// Gives cached blocks back to the system: all of them, except small ones that lie beside blocks in use.
void trim() noexcept;

}  // namespace headlab::pool
