#include "framework/ops/embedding.h"

#include "framework/autograd/node.h"
#include "framework/kernels/gather.h"
#include "framework/ops/positions.h"

namespace headlab {

// out_i = W[id_i], so dW[r] = Σ over i with id_i = r of dy_i.
Tensor embedding(const Array& ids, const Tensor& weight) {
  check(static_cast<bool>(ids), "embedding", "ids are absent");
  check(ids.dtype() == DType::i64, "embedding", "ids are {}, they need to be i64", name_of(ids.dtype()));
  check(weight.rank() == 2, "embedding", "weight of shape {}, it needs [vocabulary, d]", weight.shape());
  const std::int64_t vocabulary = weight.dim(0);
  const std::int64_t d = weight.dim(1);
  const std::int64_t* id = ids.data<std::int64_t>();
  for (std::int64_t i = 0; i < ids.size(); ++i) {
    if (id[i] >= 0 && id[i] < vocabulary) continue;
    fail("embedding", "id {} at position {} is outside the vocabulary of {}", id[i],
         position_of(i, ids.shape()), vocabulary);
  }
  Array y(ids.shape().inserted(ids.rank(), d), weight.dtype());
  dispatch(weight.dtype(), "embedding", [&](auto zero) {
    using T = decltype(zero);
    kernels::gather_rows(weight.value().data<T>(), id, ids.size(), d, y.data<T>());
  });
  // A copy: callers fill the same array of ids for the next batch.
  const Array kept = needs_grad({weight}) ? ids.copy() : Array();
  return record("embedding", std::move(y), {weight}, [kept, vocabulary, d](const Array& dy, Sinks dx) {
    dispatch(dy.dtype(), "embedding", [&](auto zero) {
      using T = decltype(zero);
      const Sink::Destination to = dx[0].open();
      kernels::scatter_add_rows(dy.data<T>(), kept.data<std::int64_t>(), kept.size(), d, to.array.data<T>(),
                                vocabulary, to.accumulate);
    });
  });
}

}  // namespace headlab
