// Memory of one kernel for the time of its call.
#pragma once

#include <array>
#include <cstdint>

#include "framework/core/check.h"
#include "framework/core/pool.h"

namespace headlab::kernels {

/// Floats for packed operands and the like, uninitialised: on the stack where few are needed, else from the
/// pool. Error: out of memory.
class Scratch {
 public:
  explicit Scratch(std::int64_t floats) {
    if (floats <= static_cast<std::int64_t>(small_.size())) return;
    const std::int64_t bytes = floats * static_cast<std::int64_t>(sizeof(float));
    block_ = pool::allocate(bytes);
    check(block_ != nullptr, "gemm", "out of memory for {} bytes of scratch", bytes);
  }
  ~Scratch() {
    if (block_ != nullptr) pool::release(block_);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  float* data() { return block_ != nullptr ? static_cast<float*>(block_) : small_.data(); }

 private:
  alignas(64) std::array<float, 4096> small_;  // left uninitialised
  void* block_ = nullptr;
};

}  // namespace headlab::kernels
