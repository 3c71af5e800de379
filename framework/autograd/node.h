// What an operation uses to put itself into the graph. An op is a free function that computes its value and
// hands record() a closure:
//
//   Tensor mul(const Tensor& a, const Tensor& b) {
//     Array y = …;
//     return record("mul", y, {a, b}, [a = Saved(a, "mul"), b = Saved(b, "mul")](const Array& dy, Sinks dx) {
//       if (dx[0]) dx[0].add(product(dy, b.get()));
//       if (dx[1]) dx[1].add(product(dy, a.get()));
//     });
//   }
//
// Closures work on Arrays, never on Tensors: there are no higher-order gradients. The order of sums is fixed:
// contributions reach a tensor in descending order of the nodes' numbers. So never create two nodes in one
// argument list or operator expression (compilers evaluate those in different orders): name the
// intermediates.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "framework/autograd/tensor.h"

namespace headlab {

namespace detail {
/// A gradient on its way: of a node's output or of a leaf.
struct Slot {
  Array array;
  Shape shape;
  DType dtype = DType::f32;
  bool filled = false;
  bool pinned = false;  ///< the array is a fixed place (flat parameter buffer): always written in place
};
}  // namespace detail

/// Where the gradient of one input goes. False when nobody wants it.
class Sink {
 public:
  Sink() = default;
  explicit operator bool() const { return slot_ != nullptr; }
  /// Takes a gradient of the input's shape: moved into an empty slot, added to a filled one. Error: another
  /// shape or type.
  void add(Array gradient);

  struct Destination {
    Array& array;  ///< of the input's shape; uninitialised unless accumulate
    bool
        accumulate;  ///< the kernel must add to what is there (beta = 1) instead of overwriting it (beta = 0)
    double beta() const { return accumulate ? 1 : 0; }
  };
  /// A place that a kernel writes into: every element, and before another sink is touched (both may be the
  /// same tensor).
  Destination open();

 private:
  friend class Tape;
  explicit Sink(detail::Slot* slot) : slot_(slot) {}
  detail::Slot* slot_ = nullptr;
};
using Sinks = std::span<Sink>;

/// An input's value kept for backward. get() is an error when the value was changed in place since.
class Saved {
 public:
  Saved() = default;
  Saved(const Tensor& tensor, std::string_view op);
  /// Keeps nothing unless `wanted`.
  Saved(const Tensor& tensor, std::string_view op, bool wanted);
  const Array& get() const;

 private:
  Array value_;
  detail::Ref<detail::Version> version_;
  std::int64_t expected_ = 0;
  std::string_view op_;
};

/// Whether an operation on these inputs will be recorded.
bool needs_grad(std::initializer_list<Tensor> inputs);
bool needs_grad(std::span<const Tensor> inputs);

namespace detail {

struct Edge {
  Ref<Node> node;  // a computed input: its node and which output
  int output = 0;
  Ref<Record> leaf;  // or a leaf that wants a gradient; neither: nobody wants one
};

struct Node : Counted {
  explicit Node(std::string_view op);
  virtual ~Node();
  virtual void run(std::span<const Array> dy, Sinks dx) = 0;
  virtual void drop_closure() = 0;
  void connect(std::span<const Tensor> inputs);
  Tensor output(Array value, const Tensor* view_of, bool closure_keeps_it);

  std::uint64_t number;
  std::string_view name;
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
  void run(std::span<const Array> dy, Sinks dx) override {
    if constexpr (std::is_invocable_v<Closure&, const Array&, Sinks>) {
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

/// Whether the closure holds the op's own output, which then must not change in place before backward.
enum class Keeps : bool { nothing, output };

/// The result of an op with one output. The closure is called as closure(dy, dx): dy the gradient of the
/// output (never absent), dx one sink an input. It is dropped at once when nothing needs a gradient.
template <class Closure>
Tensor record(std::string_view op, Array value, std::span<const Tensor> inputs, Closure closure,
              Keeps keeps = Keeps::nothing, const Tensor* view_of = nullptr) {
  if (!needs_grad(inputs)) return detail::untracked(std::move(value), view_of);
  detail::Ref<detail::Node> node(new detail::NodeOf<Closure>(op, std::move(closure)));
  node->connect(inputs);
  return node->output(std::move(value), view_of, keeps == Keeps::output);
}
template <class Closure>
Tensor record(std::string_view op, Array value, std::initializer_list<Tensor> inputs, Closure closure,
              Keeps keeps = Keeps::nothing) {
  return record(op, std::move(value), std::span<const Tensor>(inputs.begin(), inputs.size()),
                std::move(closure), keeps);
}

/// As record(), for a value that shares its numbers with `whole` (a reshape, a leading range): both have one
/// version.
template <class Closure>
Tensor record_view(std::string_view op, Array value, const Tensor& whole, Closure closure) {
  return record(op, std::move(value), std::span<const Tensor>(&whole, 1), std::move(closure), Keeps::nothing,
                &whole);
}

/// An op with several outputs. The closure is called as closure(std::span<const Array> dy, Sinks dx), once,
/// when all uses of all outputs have contributed; an output that nobody used has an absent (false) gradient.
template <class Closure>
std::vector<Tensor> record_outputs(std::string_view op, std::vector<Array> values,
                                   std::span<const Tensor> inputs, Closure closure,
                                   Keeps keeps = Keeps::nothing) {
  std::vector<Tensor> results;
  if (!needs_grad(inputs)) {
    for (Array& value : values) results.push_back(detail::untracked(std::move(value), nullptr));
    return results;
  }
  detail::Ref<detail::Node> node(new detail::NodeOf<Closure>(op, std::move(closure)));
  node->connect(inputs);
  for (Array& value : values)
    results.push_back(node->output(std::move(value), nullptr, keeps == Keeps::output));
  return results;
}
template <class Closure>
std::vector<Tensor> record_outputs(std::string_view op, std::vector<Array> values,
                                   std::initializer_list<Tensor> inputs, Closure closure,
                                   Keeps keeps = Keeps::nothing) {
  return record_outputs(op, std::move(values), std::span<const Tensor>(inputs.begin(), inputs.size()),
                        std::move(closure), keeps);
}

}  // namespace headlab
