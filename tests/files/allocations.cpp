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
void* counted_or_null(std::size_t bytes) noexcept {
  total.fetch_add(static_cast<std::int64_t>(bytes), std::memory_order_relaxed);
  return std::malloc(bytes);
}
void* counted(std::size_t bytes) {
  if (void* block = counted_or_null(bytes)) return block;
  throw std::bad_alloc();
}
}  // namespace
}  // namespace headlab

void* operator new(std::size_t bytes) { return headlab::counted(bytes); }
void* operator new[](std::size_t bytes) { return headlab::counted(bytes); }
// std::stable_sort and friends ask this way; all must go to the same heap.
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  return headlab::counted_or_null(bytes);
}
void* operator new[](std::size_t bytes, const std::nothrow_t&) noexcept {
  return headlab::counted_or_null(bytes);
}
void operator delete(void* block) noexcept { std::free(block); }
void operator delete[](void* block) noexcept { std::free(block); }
void operator delete(void* block, std::size_t) noexcept { std::free(block); }
void operator delete[](void* block, std::size_t) noexcept { std::free(block); }
