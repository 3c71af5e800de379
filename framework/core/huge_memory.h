// Memory from the system in huge pages, for the buffer pool only: on ordinary pages a product of matrices
// that leave the cache spends up to half of its time looking addresses up.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

namespace headlab::pool {

/// `bytes` bytes in pages of their own, 64-byte aligned, huge ones where the system has them; nullptr when
/// there is no memory. Given back with std::free.
void* huge_memory(std::int64_t bytes);

/// A huge piece of memory from which small blocks are cut, one after another.
struct Slab {
  ~Slab();
  char* memory = nullptr;
  std::int64_t used = 0;    ///< bytes cut off so far
  std::int64_t blocks = 0;  ///< blocks cut off so far
  std::int64_t cached = 0;  ///< those of them that nobody uses
};

/// All slabs. Not thread-safe: the pool's lock guards it.
class Slabs {
 public:
  /// The largest block that is cut from a slab.
  static constexpr std::int64_t most_bytes = std::int64_t{1} << 20;
  struct Cut {
    void* memory = nullptr;  ///< null when the system has none
    Slab* slab = nullptr;
  };
  Cut cut(std::int64_t bytes);
  /// Gives slabs back whose blocks are all cached. Blocks of slabs with `cached == blocks` must not be used
  /// any more.
  void free_unused();

 private:
  std::vector<std::unique_ptr<Slab>> slabs_;
};

}  // namespace headlab::pool
