#include "framework/ops/allowed_products.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "framework/autograd/node.h"
#include "framework/core/check.h"
#include "framework/kernels/finite.h"
#include "framework/kernels/gemm.h"

namespace headlab {

namespace {

using kernels::Transpose;

// out [m, d] += factors [m, n] · rows [n, d]; a row whose factor is 0 is left out, whatever it holds. Rows
// are read as 0 there, so that the sums are those of gemm.
template <class T>
void add_weighted(const T* factors, const T* rows, T* out, std::int64_t m, std::int64_t n, std::int64_t d) {
  if (kernels::all_finite(rows, n, d, d)) {
    kernels::gemm(Transpose::no, Transpose::no, m, d, n, factors, n, rows, d, T{1}, out, d);
    return;
  }
  std::vector<T> seen(static_cast<std::size_t>(n * d));
  for (std::int64_t i = 0; i < m; ++i, factors += n, out += d) {
    std::copy_n(rows, n * d, seen.data());
    for (std::int64_t j = 0; j < n; ++j) {
      if (factors[j] == 0) std::fill_n(seen.data() + j * d, d, T{0});
    }
    kernels::gemm(Transpose::no, Transpose::no, 1, d, n, factors, n, seen.data(), d, T{1}, out, d);
  }
}

template <class T>
std::vector<T> transposed(const T* x, std::int64_t rows, std::int64_t columns) {
  std::vector<T> y(static_cast<std::size_t>(rows * columns));
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < columns; ++j) y[static_cast<std::size_t>(j * rows + i)] = x[i * columns + j];
  }
  return y;
}

struct Sizes {
  std::int64_t batch, heads, kv_heads, n_q, n_k, d;
};

Sizes sizes_of(const Shape& queries, const Shape& keys) {
  const bool ranks = queries.rank() == 4 && keys.rank() == 4;
  check(ranks && queries[0] == keys[0] && keys[1] >= 1 && queries[1] % keys[1] == 0, "attention",
        "{} and {} do not fit as queries and keys", queries, keys);
  return {queries[0], queries[1], keys[1], queries[2], keys[2], keys[3]};
}

// f(index of a query head, index of its key head), heads of an example after another.
template <class F>
void for_heads(const Sizes& s, const F& f) {
  const std::int64_t group = s.heads / s.kv_heads;
  for (std::int64_t h = 0; h < s.batch * s.heads; ++h) f(h, h / group);
}

template <class T>
void clear_blocked(T* scores, const ResolvedMask& mask, const Sizes& s) {
  const T* bias = mask.bias() ? mask.bias().data<T>() : nullptr;
  for (std::int64_t r = 0; r < s.batch * s.heads * s.n_q; ++r, scores += s.n_k) {
    const ResolvedMask::Row row = mask.row(r / (s.n_q * s.heads), r / s.n_q % s.heads, r % s.n_q);
    for (std::int64_t j = 0; j < s.n_k; ++j) {
      const bool minus_infinity = row.bias >= 0 && bias[row.bias + j] == -std::numeric_limits<T>::infinity();
      if (!row.allows(j) || minus_infinity) scores[j] = 0;
    }
  }
}

// y = a bᵀ by head.
template <class T>
Array products(const Array& a, const Array& b, const Sizes& s) {
  Array y({s.batch, s.heads, s.n_q, s.n_k}, a.dtype());
  for_heads(s, [&](std::int64_t h, std::int64_t kv) {
    kernels::gemm(Transpose::no, Transpose::yes, s.n_q, s.n_k, s.d, a.data<T>() + h * s.n_q * s.d, s.d,
                  b.data<T>() + kv * s.n_k * s.d, s.d, T{0}, y.data<T>() + h * s.n_q * s.n_k, s.n_k);
  });
  return y;
}

// y_i = Σ_j f_ij b_j by head.
template <class T>
Array sums_over_keys(const Array& f, const Array& b, const Sizes& s) {
  Array y = Array::zeros({s.batch, s.heads, s.n_q, s.d}, f.dtype());
  for_heads(s, [&](std::int64_t h, std::int64_t kv) {
    add_weighted(f.data<T>() + h * s.n_q * s.n_k, b.data<T>() + kv * s.n_k * s.d,
                 y.data<T>() + h * s.n_q * s.d, s.n_q, s.n_k, s.d);
  });
  return y;
}

// y_j = Σ_i f_ij a_i by key head, over all its query heads.
template <class T>
Array sums_over_queries(const Array& f, const Array& a, const Sizes& s) {
  Array y = Array::zeros({s.batch, s.kv_heads, s.n_k, s.d}, f.dtype());
  for_heads(s, [&](std::int64_t h, std::int64_t kv) {
    const std::vector<T> by_key = transposed(f.data<T>() + h * s.n_q * s.n_k, s.n_q, s.n_k);
    add_weighted(by_key.data(), a.data<T>() + h * s.n_q * s.d, y.data<T>() + kv * s.n_k * s.d, s.n_k, s.n_q,
                 s.d);
  });
  return y;
}

}  // namespace

// s = q kᵀ over allowed pairs: dq_i = Σ_j ds_ij k_j, dk_j = Σ_i ds_ij q_i over the same.
Tensor allowed_scores(const Tensor& q, const Tensor& k, const ResolvedMask& mask) {
  const Sizes s = sizes_of(q.shape(), k.shape());
  check(q.dim(3) == s.d, "attention", "queries {} and keys {} differ in size", q.shape(), k.shape());
  return dispatch(q.dtype(), "attention", [&](auto zero) {
    using T = decltype(zero);
    Array y = products<T>(q.value(), k.value(), s);
    clear_blocked(y.data<T>(), mask, s);
    return record(
        "allowed_scores", y, {q, k},
        [q = Saved(q, "allowed_scores"), k = Saved(k, "allowed_scores"), mask, s](const Array& dy, Sinks dx) {
          Array ds = dy.copy();
          clear_blocked(ds.data<T>(), mask, s);
          if (dx[0]) dx[0].add(sums_over_keys<T>(ds, k.get(), s));
          if (dx[1]) dx[1].add(sums_over_queries<T>(ds, q.get(), s));
        });
  });
}

// z_i = Σ_j w_ij v_j where w_ij ≠ 0: dw_ij = dz_i · v_j there and 0 elsewhere, dv_j = Σ_i w_ij dz_i.
Tensor weighted_values(const Tensor& weights, const Tensor& v) {
  const Sizes s = sizes_of(weights.shape(), v.shape());
  check(weights.dim(3) == s.n_k, "attention", "weights {} do not fit values {}", weights.shape(), v.shape());
  return dispatch(v.dtype(), "attention", [&](auto zero) {
    using T = decltype(zero);
    return record("weighted_values", sums_over_keys<T>(weights.value(), v.value(), s), {weights, v},
                  [w = Saved(weights, "weighted_values"), v = Saved(v, "weighted_values"), s](const Array& dy,
                                                                                              Sinks dx) {
                    const Array& weight = w.get();
                    if (dx[0]) {
                      Array dw = products<T>(dy, v.get(), s);
                      for (std::int64_t i = 0; i < dw.size(); ++i) {
                        if (weight.data<T>()[i] == 0) dw.data<T>()[i] = 0;
                      }
                      dx[0].add(std::move(dw));
                    }
                    if (dx[1]) dx[1].add(sums_over_queries<T>(weight, dy, s));
                  });
  });
}

}  // namespace headlab
