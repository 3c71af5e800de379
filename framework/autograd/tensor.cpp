#include "framework/autograd/tensor.h"

#include <atomic>

#include "framework/autograd/record.h"

namespace headlab {

namespace {
thread_local bool recording = true;
std::atomic<std::int64_t> live_tensors{0};
}  // namespace

namespace detail {
Record::Record() { live_tensors.fetch_add(1, std::memory_order_relaxed); }
Record::~Record() { live_tensors.fetch_sub(1, std::memory_order_relaxed); }
void retain(Record* record) noexcept { raise_count(*record); }
void drop(Record* record) noexcept {
  if (lower_count(*record)) delete record;
}
std::int64_t live_nodes();
}  // namespace detail

NoGrad::NoGrad() : before_(recording) { recording = false; }
NoGrad::~NoGrad() { recording = before_; }
bool grad_enabled() { return recording; }

GraphCounters graph_counters() { return {live_tensors.load(), detail::live_nodes()}; }

Tensor::Tensor(Array value, bool requires_grad) : record_(new detail::Record) {
  check(static_cast<bool>(value), "tensor", "needs a value");
  record_->value = std::move(value);
  if (requires_grad) set_requires_grad(true);
}

const Array& Tensor::value() const {
  check(static_cast<bool>(record_), "tensor", "is undefined");
  return record_->value;
}

bool Tensor::requires_grad() const { return record_ && (record_->node || record_->requires_grad); }
bool Tensor::is_leaf() const { return record_ && !record_->node; }

Tensor& Tensor::set_requires_grad(bool on) {
  check(is_leaf(), "requires_grad", "can only be set on a leaf, not on a computed or undefined tensor");
  const DType type = dtype();
  check(!on || type == DType::f32 || type == DType::f64, "requires_grad", "needs f32 or f64, not {}",
        name_of(type));
  record_->requires_grad = on;
  record_->gradient.shape = shape();
  record_->gradient.dtype = type;
  return *this;
}

bool Tensor::has_grad() const { return record_ && record_->gradient.filled; }

const Array& Tensor::grad() const {
  check(static_cast<bool>(record_), "grad", "the tensor is undefined");
  check(is_leaf(), "grad", "only leaves keep their gradient; this tensor of shape {} was computed", shape());
  check(record_->gradient.filled, "grad", "no gradient has reached this tensor of shape {}", shape());
  return record_->gradient.array;
}

void Tensor::clear_grad() {
  if (record_) record_->gradient.filled = false;
}

Array& Tensor::change() {
  check(static_cast<bool>(record_), "tensor", "is undefined");
  ++record_->shared_version()->value;
  return record_->value;
}

Tensor Tensor::detach() const { return detail::untracked(value(), this); }

void Tensor::bind(Array value, Array grad) {
  check(is_leaf(), "bind", "needs a leaf");
  check(value.shape() == shape() && grad.shape() == shape(), "bind", "{} and {} for a tensor of shape {}",
        value.shape(), grad.shape(), shape());
  check(value.dtype() == dtype() && grad.dtype() == dtype(), "bind", "{} and {} for a tensor of {}",
        name_of(value.dtype()), name_of(grad.dtype()), name_of(dtype()));
  record_->value = std::move(value);
  detail::Slot& slot = record_->gradient;
  slot.array = std::move(grad);
  slot.filled = false;
  slot.pinned = true;
}

}  // namespace headlab
