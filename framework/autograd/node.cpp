#include "framework/autograd/node.h"

#include <atomic>

#include "framework/autograd/record.h"
#include "framework/kernels/accumulate.h"

namespace headlab {

namespace {
std::atomic<std::int64_t> nodes{0};
std::atomic<std::uint64_t> next_number{1};
}  // namespace

// ---- Sink
// ----------------------------------------------------------------------------------------------------------

namespace {
// dst += src, whatever the type.
void add_into(Array& dst, const Array& src) {
  dispatch(dst.dtype(), "backward", [&](auto zero) {
    using T = decltype(zero);
    kernels::accumulate(src.data<T>(), dst.data<T>(), dst.size());
  });
}
}  // namespace

void Sink::add(Array gradient) {
  detail::Slot& slot = *slot_;
  check(gradient.shape() == slot.shape && gradient.dtype() == slot.dtype, "backward",
        "a gradient of shape {} and type {} for a tensor of shape {} and type {}", gradient.shape(),
        name_of(gradient.dtype()), slot.shape, name_of(slot.dtype));
  if (!slot.filled && !slot.pinned) {
    slot.array = std::move(gradient);
    slot.filled = true;
    return;
  }
  const Destination to = open();
  if (!to.accumulate) to.array.zero();
  add_into(to.array, gradient);
}

bool Sink::empty() const { return !slot_->filled; }

Sink::Destination Sink::open() {
  detail::Slot& slot = *slot_;
  const bool accumulate = slot.filled;
  if (!slot.pinned) {
    // A gradient that arrived by add() may be shared with another slot or with the user: never write into it.
    if (accumulate && !slot.array.unique()) slot.array = slot.array.copy();
    if (!accumulate && !(slot.array && slot.array.unique() && slot.array.shape() == slot.shape)) {
      slot.array = Array(slot.shape, slot.dtype);
    }
  }
  slot.filled = true;
  return {slot.array, accumulate};
}

// ---- Saved
// ---------------------------------------------------------------------------------------------------------

Saved::Saved(const Tensor& tensor, std::string_view op) : Saved(tensor, op, true) {}

Saved::Saved(const Tensor& tensor, std::string_view op, bool wanted) : op_(op) {
  if (!wanted || !tensor) return;
  value_ = tensor.value();
  if (!grad_enabled()) return;
  version_ = tensor.record_->shared_version();
  expected_ = version_->value;
}

const Array& Saved::get() const {
  check(!version_ || version_->value == expected_, op_,
        "an input of shape {} was changed in place after it was used; its gradient would be wrong",
        value_.shape());
  return value_;
}

// ---- Node
// ----------------------------------------------------------------------------------------------------------

bool needs_grad(std::span<const Tensor> inputs) {
  if (!grad_enabled()) return false;
  for (const Tensor& input : inputs) {
    if (input.requires_grad()) return true;
  }
  return false;
}
bool needs_grad(std::initializer_list<Tensor> inputs) {
  return needs_grad(std::span<const Tensor>(inputs.begin(), inputs.size()));
}

namespace detail {

std::int64_t live_nodes() { return nodes.load(); }

Node::Node(std::string_view op)
    : number(next_number.fetch_add(1, std::memory_order_relaxed)), name(op), layer(profile::layer()) {
  nodes.fetch_add(1, std::memory_order_relaxed);
}
Node::~Node() { nodes.fetch_sub(1, std::memory_order_relaxed); }

void Node::connect(std::span<const Tensor> tensors) {
  inputs.reserve(tensors.size());
  for (const Tensor& tensor : tensors) {
    Edge edge;
    if (tensor) {
      const Ref<Record>& record = tensor.record_;
      if (record->node) {
        edge.node = record->node;
        edge.output = record->output;
      } else if (record->requires_grad) {
        edge.leaf = record;
      }
    }
    inputs.push_back(std::move(edge));
  }
}

Tensor Node::output(Array value, const Tensor* view_of, bool closure_keeps_it) {
  Slot slot;
  slot.shape = value.shape();
  slot.dtype = value.dtype();
  Ref<Record> record(new Record);
  record->value = std::move(value);
  record->node = Ref<Node>(this);
  record->output = static_cast<int>(outputs.size());
  if (view_of) record->version = view_of->record_->shared_version();
  if (closure_keeps_it) {
    const Ref<Version>& version = record->shared_version();
    kept.push_back({version, version->value});
  }
  outputs.push_back(std::move(slot));
  return Tensor(std::move(record));
}

Tensor untracked(Array value, const Tensor* view_of) {
  Tensor result(std::move(value));
  if (view_of) Record::share_version(result, *view_of);
  return result;
}

void Record::share_version(Tensor& view, const Tensor& whole) {
  view.record_->version = whole.record_->shared_version();
}

void retain(Node* node) noexcept { raise_count(*node); }

// A graph may be a million nodes deep: nodes whose last handle goes are queued and torn down in a loop, never
// by recursion.
void drop(Node* node) noexcept {
  if (!lower_count(*node)) return;
  thread_local std::vector<Node*> doomed;
  thread_local bool draining = false;
  doomed.push_back(node);
  if (draining) return;
  draining = true;
  while (!doomed.empty()) {
    Node* next = doomed.back();
    doomed.pop_back();
    delete next;
  }
  draining = false;
}

}  // namespace detail
}  // namespace headlab
