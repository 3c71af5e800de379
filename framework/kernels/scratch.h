// Memory of one kernel for the time of its call.
#pragma once

#include <cstdint>
#include <utility>

namespace headlab::kernels {

namespace detail {
/// 64-byte aligned and uninitialised (NaN where the pool poisons). What the thread took last it should give
/// back first. Error: out of memory.
void* take_scratch(std::int64_t bytes);
void give_scratch(void* memory, std::int64_t bytes) noexcept;
}  // namespace detail

/// `count` numbers that belong to the thread which made them. Kernels work on tiles for some microseconds
/// each, too short to ask a pool that all threads share.
template <class T>
class Scratch {
 public:
  Scratch() = default;
  explicit Scratch(std::int64_t count)
      : bytes_(count * static_cast<std::int64_t>(sizeof(T))),
        data_(bytes_ > 0 ? static_cast<T*>(detail::take_scratch(bytes_)) : nullptr) {}
  ~Scratch() {
    if (data_ != nullptr) detail::give_scratch(data_, bytes_);
  }
  Scratch(Scratch&& other) noexcept
      : bytes_(std::exchange(other.bytes_, 0)), data_(std::exchange(other.data_, nullptr)) {}
  Scratch& operator=(Scratch&& other) noexcept {
    std::swap(bytes_, other.bytes_);
    std::swap(data_, other.data_);
    return *this;
  }
  explicit operator bool() const { return data_ != nullptr; }
  T* data() const { return data_; }

 private:
  std::int64_t bytes_ = 0;
  T* data_ = nullptr;
};

}  // namespace headlab::kernels
