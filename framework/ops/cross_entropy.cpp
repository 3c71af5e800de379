#include "framework/ops/cross_entropy.h"

#include "framework/autograd/node.h"
#include "framework/kernels/losses.h"
#include "framework/ops/positions.h"

namespace headlab {

namespace {

// A value that no target has stands for "none is ignored".
std::int64_t ignored_value(const CrossEntropyOptions& options) { return options.ignore.value_or(INT64_MIN); }

std::int64_t count_targets(const Array& targets, std::int64_t classes, const CrossEntropyOptions& options) {
  const std::int64_t* target = targets.data<std::int64_t>();
  std::int64_t counted = 0;
  for (std::int64_t i = 0; i < targets.size(); ++i) {
    if (options.ignore && target[i] == *options.ignore) continue;
    ++counted;
    if (target[i] >= 0 && target[i] < classes) continue;
    const Shape place = position_of(i, targets.shape());
    if (options.ignore) {
      fail("cross_entropy", "target {} at position {} is neither one of {} classes nor the ignored value {}",
           target[i], place, classes, *options.ignore);
    }
    fail("cross_entropy", "target {} at position {} is not one of {} classes", target[i], place, classes);
  }
  return counted;
}

}  // namespace

// With p = softmax(x), wanted distribution q and N counted rows: loss = -Σ_rows Σ_j q_j·log p_j / N. Since
// ∂log p_j/∂x_k = δ_jk - p_k and Σ q_j = 1, dx_k = dy/N·(p_k - q_k).
CrossEntropy cross_entropy(const Tensor& logits, const Array& targets, const CrossEntropyOptions& options) {
  check(static_cast<bool>(targets), "cross_entropy", "targets are absent");
  check(targets.dtype() == DType::i64, "cross_entropy", "targets are {}, they need to be i64",
        name_of(targets.dtype()));
  check(logits.rank() > 0 && logits.shape().without(-1) == targets.shape(), "cross_entropy",
        "logits of shape {} and targets of shape {}; logits need one more axis, the classes", logits.shape(),
        targets.shape());
  check(options.label_smoothing >= 0 && options.label_smoothing <= 1, "cross_entropy",
        "label_smoothing {} is not in [0, 1]", options.label_smoothing);
  const std::int64_t classes = logits.dim(-1);
  const std::int64_t counted = count_targets(targets, classes, options);
  const Shape rows{targets.size()};
  const DType dtype = logits.dtype();
  const Array kept = needs_grad({logits}) ? targets.copy() : targets;
  const kernels::Scores scores{rows.size(), classes, kept.data<std::int64_t>(), ignored_value(options),
                               options.label_smoothing};
  Array top(rows, dtype);
  Array log_sum(rows, dtype);
  double sum = 0;
  dispatch(dtype, "cross_entropy", [&](auto zero) {
    using T = decltype(zero);
    Array losses(rows, dtype);
    kernels::cross_entropy(logits.value().data<T>(), scores, losses.data<T>(), top.data<T>(),
                           log_sum.data<T>());
    for (const T loss : losses.values<T>()) sum += static_cast<double>(loss);
  });
  const double divisor = counted > 0 ? static_cast<double>(counted) : 1;
  Tensor loss = record("cross_entropy", Array::full(Shape{}, sum / divisor, dtype), {logits},
                       [x = Saved(logits, "cross_entropy"), kept, scores, top, log_sum, divisor](
                           const Array& dy, Sinks dx, Again again) {
                         // A large vocabulary's logits are the largest array of a step: their gradient takes
                         // their place where nobody reads them any more.
                         const bool in_place = again == Again::never && x.alone() && dx[0].empty();
                         Array place = in_place ? x.get() : Array();
                         dispatch(dy.dtype(), "cross_entropy", [&](auto zero) {
                           using T = decltype(zero);
                           const auto write = [&](Array& to, bool accumulate) {
                             kernels::cross_entropy_backward(
                                 x.get().data<T>(), scores, top.data<T>(), log_sum.data<T>(),
                                 static_cast<T>(dy.item() / divisor), to.data<T>(), accumulate);
                           };
                           if (in_place) return write(place, false);
                           const Sink::Destination to = dx[0].open();
                           write(to.array, to.accumulate);
                         });
                         if (in_place) dx[0].add(std::move(place));
                       });
  return {std::move(loss), counted};
}

// loss = Σ (x - t)²/n, so dx = 2·dy/n·(x - t) and dt = -dx.
Tensor mse(const Tensor& x, const Tensor& target) {
  check(x.shape() == target.shape(), "mse", "x of shape {} and target of shape {}", x.shape(),
        target.shape());
  check(x.dtype() == target.dtype(), "mse", "x is {}, target is {}", name_of(x.dtype()),
        name_of(target.dtype()));
  const double divisor = x.size() > 0 ? static_cast<double>(x.size()) : 1;
  const double sum = dispatch(x.dtype(), "mse", [&](auto zero) {
    using T = decltype(zero);
    return kernels::squared_distance(x.value().data<T>(), target.value().data<T>(), x.size());
  });
  return record("mse", Array::full(Shape{}, sum / divisor, x.dtype()), {x, target},
                [x = Saved(x, "mse"), target = Saved(target, "mse"), divisor](const Array& dy, Sinks dx) {
                  dispatch(dy.dtype(), "mse", [&](auto zero) {
                    using T = decltype(zero);
                    const T* a = x.get().data<T>();
                    const T* b = target.get().data<T>();
                    const T scale = static_cast<T>(2 * dy.item() / divisor);
                    for (const std::size_t i : {0, 1}) {
                      if (!dx[i]) continue;
                      const Sink::Destination to = dx[i].open();
                      kernels::scaled_difference(a, b, i == 0 ? scale : -scale, to.array.data<T>(),
                                                 x.get().size(), to.accumulate);
                    }
                  });
                });
}

}  // namespace headlab
