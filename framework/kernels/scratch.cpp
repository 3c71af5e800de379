#include "framework/kernels/scratch.h"

#include <cstdlib>
#include <cstring>

#include "framework/core/check.h"
#include "framework/core/huge_memory.h"
#include "framework/core/pool.h"
#include "framework/core/sanitizers.h"

namespace headlab::kernels::detail {
namespace {

#if HEADLAB_ADDRESS_SANITIZER
constexpr std::int64_t stack_bytes = 0;  // every piece from the pool, which sees a step over its end
#else
constexpr std::int64_t stack_bytes = std::int64_t{2} << 20;
#endif

/// One thread's memory, taken from its end. What is not given back in turn is free again when all is.
class Stack {
 public:
  Stack() = default;
  ~Stack() { std::free(memory_); }
  Stack(const Stack&) = delete;
  Stack& operator=(const Stack&) = delete;

  void* take(std::int64_t bytes) {
    if (used_ + bytes > stack_bytes) return nullptr;
    if (memory_ == nullptr) memory_ = static_cast<char*>(pool::huge_memory(stack_bytes));
    if (memory_ == nullptr) return nullptr;
    void* piece = memory_ + used_;
    used_ += bytes;
    ++pieces_;
    return piece;
  }
  /// False: it was not taken from here.
  bool give(void* piece, std::int64_t bytes) noexcept {
    const auto* at = static_cast<const char*>(piece);
    if (memory_ == nullptr || at < memory_ || at >= memory_ + stack_bytes) return false;
    if (at + bytes == memory_ + used_) used_ -= bytes;
    if (--pieces_ == 0) used_ = 0;
    return true;
  }

 private:
  char* memory_ = nullptr;
  std::int64_t used_ = 0, pieces_ = 0;
};

thread_local Stack stack;

std::int64_t rounded(std::int64_t bytes) { return (bytes + 63) / 64 * 64; }

}  // namespace

void* take_scratch(std::int64_t bytes) {
  void* memory = stack.take(rounded(bytes));
  if (memory == nullptr) {
    memory = pool::allocate(bytes);
    check(memory != nullptr, "scratch", "out of memory for {} bytes", bytes);
  }
#ifdef HEADLAB_POISON
  std::memset(memory, 0xFF, static_cast<std::size_t>(bytes));
#endif
  return memory;
}

void give_scratch(void* memory, std::int64_t bytes) noexcept {
  if (!stack.give(memory, rounded(bytes))) pool::release(memory);
}

}  // namespace headlab::kernels::detail
