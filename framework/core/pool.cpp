#include "framework/core/pool.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <vector>

#include <sys/mman.h>

#if defined(__SANITIZE_ADDRESS__)
#define HEADLAB_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HEADLAB_ASAN 1
#endif
#endif
#ifdef HEADLAB_ASAN
#include <sanitizer/asan_interface.h>
#endif

namespace headlab::pool {
namespace {

// Ahead of every block, in the cache line before the address handed out.
struct Header {
  std::int64_t bytes;     // as asked for
  std::int64_t capacity;  // as allocated, header excluded
  int size_class;
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
  std::mutex mutex;
  std::array<std::vector<void*>, classes> free;
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

void trim_locked(Pool& pool) noexcept {
  for (auto& blocks : pool.free) {
    for (void* block : blocks) {
#ifdef HEADLAB_ASAN
      ASAN_UNPOISON_MEMORY_REGION(block, static_cast<std::size_t>(header_of(block)->capacity));
#endif
      std::free(header_of(block));
    }
    blocks.clear();
  }
  pool.counters.cached_bytes = 0;
}

// Large blocks ask for 2 MiB pages: with 4 KiB ones a walk through memory waits for addresses, not for data.
void* fresh(std::int64_t capacity) {
  constexpr std::int64_t huge_page = std::int64_t{2} << 20;
  const std::int64_t bytes = capacity + alignment;
  if (bytes < 2 * huge_page) return std::aligned_alloc(alignment, static_cast<std::size_t>(bytes));
  const auto whole = static_cast<std::size_t>((bytes + huge_page - 1) / huge_page * huge_page);
  void* raw = std::aligned_alloc(static_cast<std::size_t>(huge_page), whole);
  if (raw) madvise(raw, whole, MADV_HUGEPAGE);  // a wish: without them all works as well
  return raw;
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
    auto& blocks = pool.free[static_cast<std::size_t>(size_class)];
    if (!blocks.empty()) {
      block = blocks.back();
      blocks.pop_back();
      pool.counters.cached_bytes -= capacity;
    } else {
      ++pool.counters.from_system;
    }
  }
  if (block) {
#ifdef HEADLAB_ASAN
    ASAN_UNPOISON_MEMORY_REGION(block, static_cast<std::size_t>(capacity));
#endif
  } else {
    void* raw = fresh(capacity);
    if (!raw) {
      trim();
      raw = fresh(capacity);
      if (!raw) return nullptr;
    }
    block = static_cast<char*>(raw) + alignment;
  }
  *header_of(block) = {bytes, capacity, size_class};
  poison_fresh(block, bytes);
  const std::lock_guard lock(pool.mutex);
  ++pool.counters.live_blocks;
  pool.counters.live_bytes += bytes;
  pool.counters.peak_bytes = std::max(pool.counters.peak_bytes, pool.counters.live_bytes);
  return block;
}

void release(void* block) noexcept {
  if (!block) return;
  Header* header = header_of(block);
  const std::int64_t bytes = header->bytes;
  const std::int64_t capacity = header->capacity;
  const int size_class = header->size_class;
  poison_fresh(block, bytes);
#ifdef HEADLAB_ASAN
  ASAN_POISON_MEMORY_REGION(block, static_cast<std::size_t>(capacity));
#endif
  Pool& pool = instance();
  const std::lock_guard lock(pool.mutex);
  --pool.counters.live_blocks;
  pool.counters.live_bytes -= bytes;
  if (pool.counters.cached_bytes + capacity > cache_limit) {
#ifdef HEADLAB_ASAN
    ASAN_UNPOISON_MEMORY_REGION(block, static_cast<std::size_t>(capacity));
#endif
    std::free(header);
    return;
  }
  try {
    pool.free[static_cast<std::size_t>(size_class)].push_back(block);
    pool.counters.cached_bytes += capacity;
  } catch (...) {
    std::free(header);
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
