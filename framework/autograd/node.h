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

#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "framework/autograd/graph.h"
#include "framework/core/profile.h"

namespace headlab {

/// Whether an operation on these inputs will be recorded.
bool needs_grad(std::initializer_list<Tensor> inputs);
bool needs_grad(std::span<const Tensor> inputs);

/// Whether the closure holds the op's own output, which then must not change in place before backward.
enum class Keeps : bool { nothing, output };

/// The result of an op with one output. The closure is called as closure(dy, dx), or closure(dy, dx, Again)
/// where it takes that: dy the gradient of the output (never absent), dx one sink an input. It is dropped at
/// once when nothing needs a gradient.
template <class Closure>
Tensor record(std::string_view op, Array value, std::span<const Tensor> inputs, Closure closure,
              Keeps keeps = Keeps::nothing, const Tensor* view_of = nullptr) {
  profile::lap(op);
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
  profile::lap(op);
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
