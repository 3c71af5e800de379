#include "framework/kernels/broadcast.h"

namespace headlab::kernels {

int BroadcastPlan::reads() const {
  bool a = inner.a != 0 || inner.size == 1;
  bool b = inner.b != 0 || inner.size == 1;
  for (int k = 0; k < outer_rank; ++k) {
    a = a && outer[static_cast<std::size_t>(k)].a != 0;
    b = b && outer[static_cast<std::size_t>(k)].b != 0;
  }
  return (a ? 1 : 0) + (b ? 1 : 0);
}

BroadcastPlan plan_broadcast(const Shape& a, const Shape& b, const Shape& out) {
  BroadcastPlan plan;
  plan.size = out.size();
  std::array<BroadcastPlan::Axis, Shape::max_rank> axes{};  // fastest first
  std::size_t count = 0;
  std::int64_t stride_a = 1;
  std::int64_t stride_b = 1;
  for (int i = 1; i <= out.rank(); ++i) {
    const std::int64_t n = out[out.rank() - i];
    const std::int64_t in_a = i <= a.rank() ? a[a.rank() - i] : 1;
    const std::int64_t in_b = i <= b.rank() ? b[b.rank() - i] : 1;
    const BroadcastPlan::Axis axis{n, in_a == 1 ? 0 : stride_a, in_b == 1 ? 0 : stride_b};
    stride_a *= in_a;
    stride_b *= in_b;
    if (n == 1) continue;
    if (count > 0) {
      auto& last = axes[count - 1];
      if (last.a * last.size == axis.a && last.b * last.size == axis.b) {
        last.size *= n;
        continue;
      }
    }
    axes[count++] = axis;
  }
  if (count > 0) plan.inner = axes[0];
  for (std::size_t k = count; k-- > 1;) {
    plan.outer[static_cast<std::size_t>(plan.outer_rank++)] = axes[k];
  }
  return plan;
}

}  // namespace headlab::kernels
