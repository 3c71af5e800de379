#include "tests/files/allocations.h"

#include <atomic>
#include <cstdlib>
#include <new>

namespace headlab {
namespace {
std::atomic<std::int64_t> total{0};
}
std::int64_t bytes_allocated() { return total.load(); }

namespace {
void* counted(std::size_t bytes) {
  total.fetch_add(static_cast<std::int64_t>(bytes), std::memory_order_relaxed);
  if (void* block = std::malloc(bytes)) return block;
  throw std::bad_alloc();
}
}  // namespace
}  // namespace headlab

void* operator new(std::size_t bytes) { return headlab::counted(bytes); }
void* operator new[](std::size_t bytes) { return headlab::counted(bytes); }
void operator delete(void* block) noexcept { std::free(block); }
void operator delete[](void* block) noexcept { std::free(block); }
void operator delete(void* block, std::size_t) noexcept { std::free(block); }
void operator delete[](void* block, std::size_t) noexcept { std::free(block); }
