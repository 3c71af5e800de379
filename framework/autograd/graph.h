// The nodes of a graph. Ops do not see them: they call record() of framework/autograd/node.h.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "framework/autograd/sink.h"

namespace headlab {

namespace detail {

struct Edge {
  Ref<Node> node;  // a computed input: its node and which output
  int output = 0;
  Ref<Record> leaf;  // or a leaf that wants a gradient; neither: nobody wants one
};

struct Node : Counted {
  explicit Node(std::string_view op);
  virtual ~Node();
  virtual void run(std::span<const Array> dy, Sinks dx, Again again) = 0;
  virtual void drop_closure() = 0;
  void connect(std::span<const Tensor> inputs);
  Tensor output(Array value, const Tensor* view_of, bool closure_keeps_it);

  std::uint64_t number;
  std::string_view name;
  std::int32_t layer;  // whose operation this is, while a profile is recorded
  std::vector<Edge> inputs;
  std::vector<Slot> outputs;
  struct KeptOutput {
    Ref<Version> version;
    std::int64_t expected;
  };
  std::vector<KeptOutput> kept;  // outputs that the closure itself holds
  bool consumed = false;
  bool queued = false;
};

template <class Closure>
struct NodeOf final : Node {
  NodeOf(std::string_view op, Closure f) : Node(op), closure(std::move(f)) {}
  void run(std::span<const Array> dy, Sinks dx, [[maybe_unused]] Again again) override {
    if constexpr (std::is_invocable_v<Closure&, const Array&, Sinks, Again>) {
      (*closure)(dy[0], dx, again);
    } else if constexpr (std::is_invocable_v<Closure&, const Array&, Sinks>) {
      (*closure)(dy[0], dx);
    } else {
      (*closure)(dy, dx);
    }
  }
  void drop_closure() override { closure.reset(); }
  std::optional<Closure> closure;
};

Tensor untracked(Array value, const Tensor* view_of);

}  // namespace detail
}  // namespace headlab
