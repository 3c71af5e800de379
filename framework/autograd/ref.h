// An intrusive counted pointer for the records and nodes of a graph.
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

namespace headlab::detail {

/// Base of counted objects. Each type has retain(T*) and drop(T*), found by the type's namespace, so that T
/// may be incomplete.
struct Counted {
  std::atomic<std::int64_t> handles{0};
};
inline void raise_count(Counted& object) { object.handles.fetch_add(1, std::memory_order_relaxed); }
/// True when that was the last handle.
inline bool lower_count(Counted& object) {
  return object.handles.fetch_sub(1, std::memory_order_acq_rel) == 1;
}

template <class T>
class Ref {
 public:
  Ref() = default;
  explicit Ref(T* object) : object_(object) {
    if (object_) retain(object_);
  }
  Ref(const Ref& other) : Ref(other.object_) {}
  Ref(Ref&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Ref& operator=(Ref other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~Ref() { reset(); }

  void reset() {
    if (T* object = std::exchange(object_, nullptr)) drop(object);
  }
  T* get() const { return object_; }
  T& operator*() const { return *object_; }
  T* operator->() const { return object_; }
  explicit operator bool() const { return object_ != nullptr; }

 private:
  T* object_ = nullptr;
};

}  // namespace headlab::detail
