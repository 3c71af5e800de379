// Where the time goes: a recording of what one thread does, by operation and layer.
//
// Nothing is to be declared by an operation: record() ends a lap, so the time since the lap before (or since
// the scope around it began) is that of the operation recorded. The walk of backward opens a scope for each
// node, modules one for each call; kernels add up the work they do, on whatever thread. While nobody records,
// each of these is one relaxed load.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace headlab::profile {

enum class Pass : std::uint8_t { none, forward, backward };

/// What one operation (in one pass, of one layer) did. Of a scope around others: what is left of it.
struct Line {
  std::string op;  ///< "linear"; of layers and phases "" or "step"
  Pass pass = Pass::none;
  std::string layer;  ///< "blocks.0.mlp.up", or ""
  std::int64_t calls = 0;
  double seconds = 0, flops = 0, bytes = 0;
};

/// A span of time, all that runs inside included.
struct Event {
  std::int32_t op = 0, layer = 0;  ///< for name_of()
  Pass pass = Pass::none;
  std::int64_t begin = 0, end = 0;  ///< nanoseconds from the start
  double flops = 0, bytes = 0;
};
std::string name_of(std::int32_t id);

struct Profile {
  double seconds = 0;
  std::vector<Line>
      lines;  ///< in order of first appearance; their seconds add up to those of outermost scopes
  std::vector<Event> events;  ///< in order of their ends
  std::int64_t left_out = 0;  ///< events after the first most_events
};
constexpr std::size_t most_events = 200'000;

/// While it lives, what this thread does is recorded. Work counted by kernels that other threads run for
/// somebody else at the same time would be taken for this one's. Error: another one lives.
class Recording {
 public:
  Recording();
  ~Recording();
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;
  /// Ends it. Scopes that are still open are left out.
  Profile stop();
};

namespace detail {
extern std::atomic<bool> recording;
void count(double flops, double bytes);
void lap(std::string_view op);
std::int32_t layer();
std::int32_t id_of(std::string_view name);
/// 0 where this thread is not the one that is recorded.
std::uint64_t open(std::int32_t op, Pass pass, std::int32_t layer);
void close(std::uint64_t opened);
}  // namespace detail

inline bool on() { return detail::recording.load(std::memory_order_relaxed); }

/// For kernels, at their entry: operations, and bytes that they cannot do without moving.
inline void count(double flops, double bytes) {
  if (on()) [[unlikely]]
    detail::count(flops, bytes);
}

/// The same of an array read or written `passes` times, with no arithmetic worth counting.
template <class T>
void moved(double passes, std::int64_t numbers) {
  count(0, passes * sizeof(T) * static_cast<double>(numbers));
}

/// The operation that ends here.
inline void lap(std::string_view op) {
  if (on()) [[unlikely]]
    detail::lap(op);
}

/// The layer that runs, for the node of its operation; 0: none.
inline std::int32_t layer() { return on() ? detail::layer() : 0; }

/// A stretch with a name: a phase, or an operation that no node stands for.
class Scope {
 public:
  explicit Scope(std::string_view op, Pass pass = Pass::none, std::int32_t of_layer = 0) {
    if (on()) [[unlikely]]
      opened_ = detail::open(detail::id_of(op), pass, of_layer);
  }
  ~Scope() {
    if (opened_ != 0) [[unlikely]]
      detail::close(opened_);
  }
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

 protected:
  Scope() = default;
  std::uint64_t opened_ = 0;
};

/// The call of a module: path() is asked only while recording.
class LayerScope : public Scope {
 public:
  template <class Module>
  explicit LayerScope(const Module& module) {
    if (on()) [[unlikely]]
      opened_ = detail::open(0, Pass::forward, detail::id_of(module.path()));
  }
};

}  // namespace headlab::profile
