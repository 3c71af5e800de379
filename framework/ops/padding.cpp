#include "framework/ops/padding.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "framework/autograd/node.h"
#include "framework/kernels/finite.h"

namespace headlab {

namespace {

using Rows = std::vector<std::int64_t>;

template <class T>
Rows broken_rows(const Array& x, const ResolvedMask& mask) {
  Rows rows;
  const std::int64_t n = x.dim(1);
  const std::int64_t d = x.dim(2);
  for (std::int64_t row = 0; row < x.dim(0) * n; ++row) {
    if (mask.is_padding(row / n, row % n) && !kernels::all_finite(x.data<T>() + row * d, 1, d, d))
      rows.push_back(row);
  }
  return rows;
}

template <class T>
Array with_rows_cleared(const Array& x, const Rows& rows) {
  Array y = x.copy();
  for (const std::int64_t row : rows) std::fill_n(y.data<T>() + row * x.dim(2), x.dim(2), T{0});
  return y;
}

}  // namespace

Tensor without_broken_padding(const Tensor& x, const Mask& mask) {
  if (!mask.names_padding()) return x;
  check(x.rank() == 3, "attention", "needs [batch, tokens, width], not {}", x.shape());
  const ResolvedMask resolved(mask.padding_alone(), x.dim(0), 1, x.dim(1), x.dim(1), "attention");
  return dispatch(x.dtype(), "attention", [&](auto zero) {
    using T = decltype(zero);
    const Rows rows = broken_rows<T>(x.value(), resolved);
    if (rows.empty()) return x;
    return record("without_broken_padding", with_rows_cleared<T>(x.value(), rows), {x},
                  [rows](const Array& dy, Sinks dx) { dx[0].add(with_rows_cleared<T>(dy, rows)); });
  });
}

}  // namespace headlab
