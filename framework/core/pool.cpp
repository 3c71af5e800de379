#include "framework/core/pool.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <vector>

#include "framework/core/busy_wait.h"
#include "framework/core/huge_memory.h"
#include "framework/core/sanitizers.h"

#if HEADLAB_ADDRESS_SANITIZER
#include <sanitizer/asan_interface.h>
#endif

namespace headlab::pool {
namespace {

// Ahead of every block, in the cache line before the address handed out.
struct Header {
  std::int64_t bytes;     // as asked for
  std::int64_t capacity;  // as allocated, header excluded
  int size_class;
  Slab* slab;  // that it was cut from, or null
};
constexpr std::int64_t alignment = 64;
static_assert(sizeof(Header) <= alignment);

// Four classes to each power of two: at most a quarter of a block is wasted.
constexpr int classes = 4 * 64;
constexpr std::int64_t smallest = 64;
// Past this the cache gives blocks back; a training step's working set is far below it on the machines this
// is for.
constexpr std::int64_t cache_limit = std::int64_t{4} << 30;

int class_of(std::int64_t bytes) {
  const auto n = static_cast<std::uint64_t>(std::max(bytes, smallest) - 1);
  const int log2 = static_cast<int>(std::bit_width(n)) - 1;  // 2^log2 <= n
  const auto quarter = static_cast<int>((n >> (log2 - 2)) & 3U);
  return 4 * log2 + quarter;
}
std::int64_t capacity_of(int size_class) {
  const int log2 = size_class / 4;
  const std::int64_t capacity = (std::int64_t{5 + size_class % 4}) << (log2 - 2);
  return (capacity + alignment - 1) / alignment * alignment;
}

struct Pool {
  BusyMutex mutex;  // threads that start together meet here: none of them should be put to sleep
  std::array<std::vector<void*>, classes> free;
  Slabs slabs;
  Counters counters;
};
// Never destroyed: arrays with static lifetime may outlive any order of destruction.
Pool& instance() {
  static Pool* pool = new Pool;
  return *pool;
}

Header* header_of(void* block) { return reinterpret_cast<Header*>(static_cast<char*>(block) - alignment); }

void poison_fresh([[maybe_unused]] void* block, [[maybe_unused]] std::int64_t bytes) {
#ifdef HEADLAB_POISON
  std::memset(block, 0xFF, static_cast<std::size_t>(bytes));  // all bits set is a NaN in f32 and f64
#endif
}

void free_block(void* block) {
#if HEADLAB_ADDRESS_SANITIZER
  ASAN_UNPOISON_MEMORY_REGION(block, static_cast<std::size_t>(header_of(block)->capacity));
#endif
  std::free(header_of(block));
}

void trim_locked(Pool& pool) noexcept {
  for (auto& blocks : pool.free) {
    // A slab goes as a whole or not at all: blocks beside living ones stay for reuse.
    const auto stays = [](void* block) {
      const Slab* slab = header_of(block)->slab;
      return slab != nullptr && slab->cached < slab->blocks;
    };
    const auto end = std::partition(blocks.begin(), blocks.end(), stays);
    for (auto block = end; block != blocks.end(); ++block) {
      pool.counters.cached_bytes -= header_of(*block)->capacity;
      if (header_of(*block)->slab == nullptr) free_block(*block);
    }
    blocks.erase(end, blocks.end());
  }
  pool.slabs.free_unused();
}

// Memory for a header and a block after it, and the slab it lies in.
Slabs::Cut fresh([[maybe_unused]] Pool& pool, std::int64_t capacity) {
  const std::int64_t bytes = capacity + alignment;
#if HEADLAB_ADDRESS_SANITIZER  // each block by itself, so that a step over its end is seen
  return {std::aligned_alloc(alignment, static_cast<std::size_t>(bytes)), nullptr};
#else
  if (bytes > Slabs::most_bytes) return {huge_memory(bytes), nullptr};
  const std::lock_guard lock(pool.mutex);
  return pool.slabs.cut(bytes);
#endif
}

}  // namespace

void* allocate(std::int64_t bytes) {
  if (bytes < 0 || bytes > (std::int64_t{1} << 62)) return nullptr;
  Pool& pool = instance();
  const int size_class = class_of(bytes);
  const std::int64_t capacity = capacity_of(size_class);
  void* block = nullptr;
  {
    const std::lock_guard lock(pool.mutex);
    ++pool.counters.allocations;
    ++pool.counters.live_blocks;
    pool.counters.live_bytes += bytes;
    pool.counters.peak_bytes = std::max(pool.counters.peak_bytes, pool.counters.live_bytes);
    auto& blocks = pool.free[static_cast<std::size_t>(size_class)];
    if (!blocks.empty()) {
      block = blocks.back();
      blocks.pop_back();
      pool.counters.cached_bytes -= capacity;
      if (Slab* slab = header_of(block)->slab) --slab->cached;
    } else {
      ++pool.counters.from_system;
    }
  }
  if (block) {
#if HEADLAB_ADDRESS_SANITIZER
    ASAN_UNPOISON_MEMORY_REGION(block, static_cast<std::size_t>(capacity));
#endif
  } else {
    Slabs::Cut raw = fresh(pool, capacity);
    if (!raw.memory) {
      trim();
      raw = fresh(pool, capacity);
    }
    if (!raw.memory) {
      const std::lock_guard lock(pool.mutex);
      --pool.counters.live_blocks;
      pool.counters.live_bytes -= bytes;
      return nullptr;
    }
    block = static_cast<char*>(raw.memory) + alignment;
    header_of(block)->slab = raw.slab;
  }
  *header_of(block) = {bytes, capacity, size_class, header_of(block)->slab};
  poison_fresh(block, bytes);
  return block;
}

void release(void* block) noexcept {
  if (!block) return;
  Header* header = header_of(block);
  const std::int64_t bytes = header->bytes;
  const std::int64_t capacity = header->capacity;
  const int size_class = header->size_class;
  poison_fresh(block, bytes);
#if HEADLAB_ADDRESS_SANITIZER
  ASAN_POISON_MEMORY_REGION(block, static_cast<std::size_t>(capacity));
#endif
  Pool& pool = instance();
  const std::lock_guard lock(pool.mutex);
  --pool.counters.live_blocks;
  pool.counters.live_bytes -= bytes;
  if (header->slab == nullptr && pool.counters.cached_bytes + capacity > cache_limit) {
    free_block(block);
    return;
  }
  try {
    pool.free[static_cast<std::size_t>(size_class)].push_back(block);
    pool.counters.cached_bytes += capacity;
    if (header->slab != nullptr) ++header->slab->cached;
  } catch (...) {
    if (header->slab == nullptr) free_block(block);  // else it is lost until the process ends
  }
}

Counters counters() {
  Pool& pool = instance();
  const std::lock_guard lock(pool.mutex);
  return pool.counters;
}

void reset_peak() {
  Pool& pool = instance();
  const std::lock_guard lock(pool.mutex);
  pool.counters.peak_bytes = pool.counters.live_bytes;
}

void trim() noexcept {
  Pool& pool = instance();
  const std::lock_guard lock(pool.mutex);
  trim_locked(pool);
}

}  // namespace headlab::pool
