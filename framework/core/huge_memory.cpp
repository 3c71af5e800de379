#include "framework/core/huge_memory.h"

#include <algorithm>
#include <cstdlib>

#include <sys/mman.h>

namespace headlab::pool {
namespace {
constexpr std::int64_t huge_page = std::int64_t{2} << 20;
constexpr std::int64_t slab_bytes = 4 * huge_page;
}  // namespace

void* huge_memory(std::int64_t bytes) {
  const std::int64_t size = (bytes + huge_page - 1) / huge_page * huge_page;
  void* memory = std::aligned_alloc(static_cast<std::size_t>(huge_page), static_cast<std::size_t>(size));
  // A wish: where huge pages are switched off, ordinary ones do as well.
  if (memory != nullptr) static_cast<void>(::madvise(memory, static_cast<std::size_t>(size), MADV_HUGEPAGE));
  return memory;
}

Slab::~Slab() { std::free(memory); }

Slabs::Cut Slabs::cut(std::int64_t bytes) {
  if (slabs_.empty() || slabs_.back()->used + bytes > slab_bytes) {
    auto slab = std::make_unique<Slab>();
    slab->memory = static_cast<char*>(huge_memory(slab_bytes));
    if (slab->memory == nullptr) return {};
    slabs_.push_back(std::move(slab));
  }
  Slab& slab = *slabs_.back();
  void* memory = slab.memory + slab.used;
  slab.used += bytes;
  ++slab.blocks;
  return {memory, &slab};
}

void Slabs::free_unused() {
  slabs_.erase(std::remove_if(slabs_.begin(), slabs_.end(),
                              [](const auto& slab) { return slab->cached == slab->blocks; }),
               slabs_.end());
}

}  // namespace headlab::pool
