// Products for the tests of gemm, and what they must give.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "framework/core/parallel.h"
#include "framework/core/random.h"
#include "framework/kernels/gemm.h"

namespace headlab::kernels {

constexpr Transpose both[] = {Transpose::no, Transpose::yes};
constexpr float nan = std::numeric_limits<float>::quiet_NaN();

template <class Number>
std::vector<Number> normals(std::int64_t count, std::uint64_t index) {
  Random random(3, Stream::evaluation, index);
  std::vector<Number> out(static_cast<std::size_t>(count));
  for (Number& x : out) x = static_cast<Number>(random.normal());
  return out;
}

/// One product with all its operands; leading dimensions are longer than rows by `slack`.
template <class Number>
struct Product {
  Transpose ta, tb;
  std::int64_t m, n, k, lda, ldb, ldc;
  std::vector<Number> a, b, c;
  Product(Transpose ta_, Transpose tb_, std::int64_t m_, std::int64_t n_, std::int64_t k_,
          std::int64_t slack = 0)
      : ta(ta_), tb(tb_), m(m_), n(n_), k(k_) {
    lda = (ta == Transpose::yes ? m : k) + slack;
    ldb = (tb == Transpose::yes ? k : n) + 2 * slack;
    ldc = n + 3 * slack;
    a = normals<Number>((ta == Transpose::yes ? k : m) * lda, 1);
    b = normals<Number>((tb == Transpose::yes ? n : k) * ldb, 2);
    c = normals<Number>(m * ldc, 3);
  }
  Number at_a(std::int64_t i, std::int64_t l) const {
    return a[ta == Transpose::yes ? l * lda + i : i * lda + l];
  }
  Number at_b(std::int64_t l, std::int64_t j) const {
    return b[tb == Transpose::yes ? j * ldb + l : l * ldb + j];
  }
  std::vector<Number> run(Number beta) const {
    auto out = c;
    gemm(ta, tb, m, n, k, a.data(), lda, b.data(), ldb, beta, out.data(), ldc);
    return out;
  }
  std::vector<Number> run_parallel(Number beta) const {
    auto out = c;
    gemm_parallel(ta, tb, m, n, k, a.data(), lda, b.data(), ldb, beta, out.data(), ldc);
    return out;
  }
  std::string text() const {
    return std::string(ta == Transpose::yes ? "T" : "N") + (tb == Transpose::yes ? "T " : "N ") +
           std::to_string(m) + "x" + std::to_string(n) + "x" + std::to_string(k);
  }
};

/// The documented order of sums, one number at a time.
inline std::vector<float> in_documented_order(const Product<float>& p, float beta) {
  const FlushToZero flush;
  auto out = p.c;
  for (std::int64_t i = 0; i < p.m; ++i) {
    for (std::int64_t j = 0; j < p.n; ++j) {
      float c = beta == 0 ? 0 : out[i * p.ldc + j];
      for (std::int64_t first = 0; first < p.k; first += gemm_block_k) {
        float sum = 0;
        for (std::int64_t l = first; l < std::min(p.k, first + gemm_block_k); ++l) {
          sum = std::fma(p.at_a(i, l), p.at_b(l, j), sum);
        }
        c = first == 0 && beta == 0 ? sum : c + sum;
      }
      out[i * p.ldc + j] = c;
    }
  }
  return out;
}

inline bool same_bits(const std::vector<float>& x, const std::vector<float>& y) {
  return std::equal(x.begin(), x.end(), y.begin(), y.end(), [](float s, float t) {
    return std::bit_cast<std::uint32_t>(s) == std::bit_cast<std::uint32_t>(t);
  });
}

}  // namespace headlab::kernels
