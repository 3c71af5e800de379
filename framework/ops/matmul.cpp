#include "framework/ops/matmul.h"

#include <algorithm>
#include <span>
#include <vector>

#include "framework/autograd/node.h"
#include "framework/core/parallel.h"
#include "framework/kernels/gemm.h"

namespace headlab {

namespace {

using kernels::Transpose;

// Which matrix of a and of b each matrix of the result is made of.
struct Plan {
  std::int64_t m = 0, k = 0, n = 0;
  std::int64_t a_count = 1, b_count = 1;
  std::vector<std::int64_t> a_of, b_of;
};

Shape leading(const Shape& shape) {
  return Shape(std::span<const std::int64_t>(shape.begin(), shape.end() - 2));
}

// For each index of `whole` the flat index of the matrix in `part`, which broadcasts to it.
std::vector<std::int64_t> matrix_of(const Shape& whole, const Shape& part) {
  std::vector<std::int64_t> list(static_cast<std::size_t>(whole.size()));
  for (std::int64_t i = 0; i < whole.size(); ++i) {
    std::int64_t rest = i;
    std::int64_t index = 0;
    std::int64_t stride = 1;
    for (int back = 1; back <= whole.rank(); ++back) {
      const std::int64_t size = whole[whole.rank() - back];
      if (back <= part.rank()) {
        const std::int64_t own = part[part.rank() - back];
        if (own != 1) index += rest % size * stride;
        stride *= own;
      }
      rest /= size;
    }
    list[static_cast<std::size_t>(i)] = index;
  }
  return list;
}

// Few large products share their own work among threads, many small ones are shared out whole. Same bits.
template <class Body>
void for_products(std::int64_t count, double flops, const Body& body) {
  constexpr std::int64_t few = 8;
  if (count < few) {
    for (std::int64_t i = 0; i < count; ++i) body(i);
    return;
  }
  const Cost cost{.flops = flops / 4};  // gemm is several times faster than the plain loop of the cost model
  parallel_for(count, grain_for(cost), cost, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) body(i);
  });
}

// One side's gradient: each of its `count` matrices gets the terms of all results that it took part in, in
// ascending order, from term(result, matrix, beta).
template <class T, class Term>
void side_gradient(Sink& sink, std::int64_t count, const std::vector<std::int64_t>& matrix, std::int64_t size,
                   double flops, const Term& term) {
  const Sink::Destination to = sink.open();
  std::vector<std::vector<std::int64_t>> results(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < matrix.size(); ++i) {
    results[static_cast<std::size_t>(matrix[i])].push_back(static_cast<std::int64_t>(i));
  }
  if (matrix.empty() && !to.accumulate) to.array.zero();
  T* out = to.array.data<T>();
  for_products(count, flops, [&](std::int64_t j) {
    T beta = static_cast<T>(to.beta());
    for (const std::int64_t i : results[static_cast<std::size_t>(j)]) {
      term(i, out + j * size, beta);
      beta = 1;
    }
  });
}

}  // namespace

// Y = A·B, so dA = dY·Bᵀ and dB = Aᵀ·dY; where a matrix was broadcast its terms are added.
Tensor matmul(const Tensor& a, const Tensor& b) {
  check(a.rank() >= 2 && b.rank() >= 2, "matmul", "shapes {} and {}: both need at least two axes", a.shape(),
        b.shape());
  check(a.dim(-1) == b.dim(-2), "matmul", "shapes {} and {}: the inner sizes {} and {} differ", a.shape(),
        b.shape(), a.dim(-1), b.dim(-2));
  check(a.dtype() == b.dtype(), "matmul", "types {} and {} differ", name_of(a.dtype()), name_of(b.dtype()));
  for (int back = 3; back <= std::min(a.rank(), b.rank()); ++back) {
    check(a.dim(-back) == b.dim(-back) || a.dim(-back) == 1 || b.dim(-back) == 1, "matmul",
          "shapes {} and {}: their leading axes do not broadcast", a.shape(), b.shape());
  }
  const Shape batch = broadcast(leading(a.shape()), leading(b.shape()), "matmul");
  Plan plan{a.dim(-2), a.dim(-1), b.dim(-1), 1, 1, {}, {}};
  if (b.rank() == 2) {  // one matrix for all rows of a: a single product
    plan.m = a.shape().product(0, a.rank() - 1);
    plan.a_of = plan.b_of = {0};
  } else {
    plan.a_count = leading(a.shape()).size();
    plan.b_count = leading(b.shape()).size();
    plan.a_of = matrix_of(batch, leading(a.shape()));
    plan.b_of = matrix_of(batch, leading(b.shape()));
  }
  Array y(batch.inserted(batch.rank(), a.dim(-2)).inserted(batch.rank() + 1, plan.n), a.dtype());
  const double flops =
      2.0 * static_cast<double>(plan.m) * static_cast<double>(plan.k) * static_cast<double>(plan.n);
  dispatch(a.dtype(), "matmul", [&](auto zero) {
    using T = decltype(zero);
    const T* left = a.value().data<T>();
    const T* right = b.value().data<T>();
    T* out = y.data<T>();
    for_products(static_cast<std::int64_t>(plan.a_of.size()), flops, [&](std::int64_t i) {
      const auto at = static_cast<std::size_t>(i);
      kernels::gemm_parallel(
          Transpose::no, Transpose::no, plan.m, plan.n, plan.k, left + plan.a_of[at] * plan.m * plan.k,
          plan.k, right + plan.b_of[at] * plan.k * plan.n, plan.n, T{0}, out + i * plan.m * plan.n, plan.n);
    });
  });
  return record(
      "matmul", std::move(y), {a, b},
      [a = Saved(a, "matmul", b.requires_grad()), b = Saved(b, "matmul", a.requires_grad()),
       plan = std::move(plan), flops](const Array& dy, Sinks dx) {
        dispatch(dy.dtype(), "matmul", [&](auto zero) {
          using T = decltype(zero);
          const T* g = dy.data<T>();
          if (dx[0]) {
            const T* right = b.get().data<T>();
            side_gradient<T>(
                dx[0], plan.a_count, plan.a_of, plan.m * plan.k, flops, [&](std::int64_t i, T* out, T beta) {
                  kernels::gemm_parallel(Transpose::no, Transpose::yes, plan.m, plan.k, plan.n,
                                         g + i * plan.m * plan.n, plan.n,
                                         right + plan.b_of[static_cast<std::size_t>(i)] * plan.k * plan.n,
                                         plan.n, beta, out, plan.k);
                });
          }
          if (dx[1]) {
            const T* left = a.get().data<T>();
            side_gradient<T>(
                dx[1], plan.b_count, plan.b_of, plan.k * plan.n, flops, [&](std::int64_t i, T* out, T beta) {
                  kernels::gemm_parallel(Transpose::yes, Transpose::no, plan.k, plan.n, plan.m,
                                         left + plan.a_of[static_cast<std::size_t>(i)] * plan.m * plan.k,
                                         plan.k, g + i * plan.m * plan.n, plan.n, beta, out, plan.n);
                });
          }
        });
      });
}

}  // namespace headlab
