#include "framework/autograd/backward.h"

#include <algorithm>
#include <vector>

#include "framework/autograd/record.h"

namespace headlab {

/// The walk of one backward call.
class Tape {
 public:
  explicit Tape(bool keep_graph) : keep_graph_(keep_graph) {}
  Tape(const Tape&) = delete;
  Tape& operator=(const Tape&) = delete;
  ~Tape() {
    for (auto& node : queue_) {
      node->queued = false;
      clear(*node);
    }
  }

  void seed(const Tensor& result, Array gradient) {
    const auto& record = detail::Record::of(result);
    if (record.node) {
      Sink(&record.node->outputs[static_cast<std::size_t>(record.output)]).add(std::move(gradient));
      push(record.node);
    } else {
      Sink(&detail::Record::of(result).gradient).add(std::move(gradient));
    }
  }

  void walk() {
    while (!queue_.empty()) {
      std::pop_heap(queue_.begin(), queue_.end(), older);
      const detail::Ref<detail::Node> node = std::move(queue_.back());
      queue_.pop_back();
      node->queued = false;
      run(*node);
    }
  }

 private:
  using NodeRef = detail::Ref<detail::Node>;
  static bool older(const NodeRef& a, const NodeRef& b) { return a->number < b->number; }
  static void clear(detail::Node& node) {
    for (detail::Slot& slot : node.outputs) {
      slot.array = Array();
      slot.filled = false;
    }
  }

  void push(const NodeRef& node) {
    check(!node->consumed, "backward",
          "the graph through '{}' was freed by an earlier backward; keep it with backward(result, "
          "{{.keep_graph = true}})",
          node->name);
    if (node->queued) return;
    node->queued = true;
    queue_.push_back(node);
    std::push_heap(queue_.begin(), queue_.end(), older);
  }

  void run(detail::Node& node) {
    // Queued because a consumer had it as an input, but no gradient came: nothing flows further from here.
    if (std::none_of(node.outputs.begin(), node.outputs.end(), [](const auto& slot) { return slot.filled; }))
      return;
    const profile::Scope scope(node.name, profile::Pass::backward, node.layer);
    for (const auto& kept : node.kept) {
      check(kept.version->value == kept.expected, node.name,
            "its output was changed in place after it was computed; its gradient would be wrong");
    }
    dy_.clear();
    for (detail::Slot& slot : node.outputs) {
      dy_.push_back(slot.filled ? std::move(slot.array) : Array());
      slot.array = Array();
      slot.filled = false;
    }
    dx_.clear();
    for (const detail::Edge& edge : node.inputs) {
      detail::Slot* slot = nullptr;
      if (edge.node) {
        slot = &edge.node->outputs[static_cast<std::size_t>(edge.output)];
      } else if (edge.leaf && edge.leaf->requires_grad) {
        slot = &edge.leaf->gradient;
      }
      dx_.push_back(Sink(slot));
    }
    // Inputs are queued first: should the closure throw, the destructor finds and clears what they received.
    for (const detail::Edge& edge : node.inputs) {
      if (edge.node) push(edge.node);
    }
    node.run(dy_, dx_, keep_graph_ ? Again::possibly : Again::never);
    if (!keep_graph_) {
      node.consumed = true;
      node.drop_closure();
      node.kept.clear();
      node.inputs.clear();
    }
  }

  bool keep_graph_;
  std::vector<NodeRef> queue_;
  std::vector<Array> dy_;
  std::vector<Sink> dx_;
};

void backward(const Tensor& result, const BackwardOptions& options) {
  check(static_cast<bool>(result), "backward", "the result is undefined");
  check(result.requires_grad(), "backward",
        "the result of shape {} does not depend on anything that needs a gradient", result.shape());
  Array seed = options.seed;
  if (seed) {
    check(seed.shape() == result.shape() && seed.dtype() == result.dtype(), "backward",
          "a seed of shape {} and type {} for a result of shape {} and type {}", seed.shape(),
          name_of(seed.dtype()), result.shape(), name_of(result.dtype()));
  } else {
    check(result.size() == 1, "backward",
          "a result of shape {} needs a seed gradient; only one element may go without", result.shape());
    seed = Array::full(result.shape(), 1, result.dtype());
  }
  const profile::Scope scope("backward");
  Tape tape(options.keep_graph);
  tape.seed(result, std::move(seed));
  tape.walk();
}

}  // namespace headlab
