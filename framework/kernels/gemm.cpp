#include "framework/kernels/gemm.h"

#include <algorithm>
#include <array>
#include <type_traits>
#include <utility>

#include "framework/core/check.h"
#include "framework/core/parallel.h"
#include "framework/core/pool.h"
#include "framework/kernels/gemm_tile.h"

namespace headlab::kernels {
namespace {

// Most rows of A packed at a time: with gemm_block_k columns they stay in a second-level cache.
constexpr std::int64_t most_rows = 768;
// Most tiles computed at a time; between them the next panel of B is asked for.
constexpr std::int64_t most_tiles = 8;

/// Memory for packed operands: on the stack where little is needed, else from the pool.
class Scratch {
 public:
  explicit Scratch(std::int64_t floats) {
    if (floats <= static_cast<std::int64_t>(small_.size())) return;
    const std::int64_t bytes = floats * static_cast<std::int64_t>(sizeof(float));
    block_ = pool::allocate(bytes);
    check(block_ != nullptr, "gemm", "out of memory for {} bytes of scratch", bytes);
  }
  ~Scratch() {
    if (block_ != nullptr) pool::release(block_);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  float* data() { return block_ != nullptr ? static_cast<float*>(block_) : small_.data(); }

 private:
  alignas(64) std::array<float, 4096> small_;  // left uninitialised
  void* block_ = nullptr;
};

template <class Number>
void validate(Transpose transpose_a, Transpose transpose_b, std::int64_t m, std::int64_t n, std::int64_t k,
              std::int64_t lda, std::int64_t ldb, Number beta, std::int64_t ldc) {
  check(m >= 0 && n >= 0 && k >= 0, "gemm", "sizes m {}, n {}, k {} must not be negative", m, n, k);
  const std::int64_t length_a = transpose_a == Transpose::yes ? m : k;
  const std::int64_t length_b = transpose_b == Transpose::yes ? k : n;
  check(lda >= length_a, "gemm", "lda {} is less than the row length {}", lda, length_a);
  check(ldb >= length_b, "gemm", "ldb {} is less than the row length {}", ldb, length_b);
  check(ldc >= n, "gemm", "ldc {} is less than the row length {}", ldc, n);
  check(beta == Number{0} || beta == Number{1}, "gemm", "beta {} is neither 0 nor 1", beta);
}

/// Heights of tiles that cover `rows` rows: as equal as can be, at most tile_rows.
class Heights {
 public:
  explicit Heights(std::int64_t rows)
      : count_((rows + detail::tile_rows - 1) / detail::tile_rows),
        low_(rows / count_),
        higher_(rows % count_) {}
  std::int64_t count() const { return count_; }
  std::int64_t height(std::int64_t tile) const { return low_ + (tile < higher_ ? 1 : 0); }
  /// Tiles of one height from this one on.
  std::int64_t alike(std::int64_t tile) const { return (tile < higher_ ? higher_ : count_) - tile; }

 private:
  std::int64_t count_, low_, higher_;  // the first higher_ tiles have one row more
};

using detail::Edge;
using detail::LayoutA;
/// [edge] for one width of tile. Masks cost nothing with AVX-512, so there every tile has them.
using Edges = std::array<detail::TileFunctions, 3>;
template <int vectors, LayoutA layout>
constexpr Edges edges() {
  constexpr bool plain = !HEADLAB_AVX512 && vectors <= detail::tile_vectors;
  constexpr Edge whole = plain ? Edge::none : Edge::masked;
  constexpr Edge half = plain ? Edge::low : Edge::masked;
  return {detail::tile_functions<vectors, layout, whole>(),
          detail::tile_functions<vectors, layout, Edge::masked>(),
          detail::tile_functions<vectors, layout, half>()};
}
template <LayoutA layout, int... i>
constexpr std::array<Edges, sizeof...(i)> widths(std::integer_sequence<int, i...>) {
  return {edges<i + 1, layout>()...};
}
/// [layout of A][vectors - 1][edge][rows]
constexpr std::array tile_table = {
    widths<LayoutA::rows>(std::make_integer_sequence<int, detail::one_row_vectors>{}),
    widths<LayoutA::columns>(std::make_integer_sequence<int, detail::one_row_vectors>{})};

struct Product {
  bool transposed_a, transposed_b;
  std::int64_t m, n, k;
  const float* a;
  std::int64_t lda;
  const float* b;
  std::int64_t ldb;
  bool keep;
  float* c;
  std::int64_t ldc;

  const float* at_a(std::int64_t i, std::int64_t l) const {
    return a + (transposed_a ? l * lda + i : i * lda + l);
  }
  const float* at_b(std::int64_t l, std::int64_t j) const {
    return b + (transposed_b ? j * ldb + l : l * ldb + j);
  }
};

void multiply(const Product& p) {
  // Packing is worth its price where many tiles read what is packed, or where rows lie so far apart that they
  // share sets of the cache (measured).
  const auto far_apart = [](std::int64_t step) { return step % 1024 == 0; };
  const bool pack_b = p.transposed_b || p.m > 256 || (far_apart(p.ldb) && p.m > 4 * detail::tile_rows);
  const bool pack_a = p.m > detail::few_rows && (p.n > 15 * detail::tile_columns ||
                                                 (far_apart(p.lda) && p.n > 3 * detail::tile_columns));
  const LayoutA layout = pack_a || p.transposed_a ? LayoutA::columns : LayoutA::rows;
  const std::int64_t most_depth = std::min(p.k, gemm_block_k);
  const std::int64_t panel_columns =
      std::min(lanes * (p.transposed_b ? detail::tile_vectors : detail::widest(p.m)),
               (p.n + lanes - 1) / lanes * lanes);
  const std::int64_t panel = pack_b ? most_depth * panel_columns : 0;
  const std::int64_t row_blocks = (p.m + most_rows - 1) / most_rows;
  const std::int64_t block_rows = (p.m + row_blocks - 1) / row_blocks;
  Scratch scratch(panel + (pack_a ? block_rows * most_depth + lanes : 0));
  float* const packed_b = scratch.data();
  float* const packed_a = packed_b + panel;

  for (std::int64_t first_row = 0; first_row < p.m; first_row += block_rows) {
    const Heights heights(std::min(block_rows, p.m - first_row));
    for (std::int64_t first_k = 0; first_k < p.k; first_k += gemm_block_k) {
      const std::int64_t depth = std::min(gemm_block_k, p.k - first_k);
      if (pack_a) {
        std::int64_t row = 0;
        for (std::int64_t tile = 0; tile < heights.count(); ++tile) {
          detail::pack_a(p.transposed_a, p.at_a(first_row + row, first_k), p.lda, heights.height(tile), depth,
                         packed_a + row * depth);
          row += heights.height(tile);
        }
      }
      for (std::int64_t column = 0; column < p.n; column += panel_columns) {
        const std::int64_t columns = std::min(panel_columns, p.n - column);
        const std::int64_t vectors = (columns + lanes - 1) / lanes;
        const std::int64_t last = columns - (vectors - 1) * lanes;
        const std::int64_t next = column + panel_columns;
        if (pack_b) {
          detail::pack_b(p.transposed_b, p.at_b(first_k, column), p.ldb, columns, depth, packed_b,
                         vectors * lanes);
        }
        const Edge edge = last == lanes ? Edge::none : last > lanes / 2 ? Edge::masked : Edge::low;
        const auto& functions =
            tile_table[static_cast<std::size_t>(layout)][vectors - 1][static_cast<std::size_t>(edge)];
        std::int64_t row = 0, count = 0;
        for (std::int64_t tile = 0; tile < heights.count(); tile += count) {
          const std::int64_t height = heights.height(tile);
          count = std::min(heights.alike(tile), most_tiles);
          if (pack_b && next < p.n) {
            detail::prefetch_b(p.transposed_b, p.at_b(first_k, next), p.ldb,
                               std::min(panel_columns, p.n - next), depth, tile, tile + count,
                               heights.count());
          }
          functions[height]({.count = count,
                             .a = pack_a ? packed_a + row * depth : p.at_a(first_row + row, first_k),
                             .a_step = pack_a ? height : p.lda,
                             .a_next = height * (pack_a           ? depth
                                                 : p.transposed_a ? 1
                                                                  : p.lda),
                             .b = pack_b ? packed_b : p.at_b(first_k, column),
                             .b_step = pack_b ? vectors * lanes : p.ldb,
                             .depth = depth,
                             .c = p.c + (first_row + row) * p.ldc + column,
                             .c_step = p.ldc,
                             .accumulate = p.keep || first_k > 0,
                             .last = first_lanes(last)});
          row += count * height;
        }
      }
    }
  }
}

template <class Number>
void clear(std::int64_t m, std::int64_t n, Number* c, std::int64_t ldc) {
  for (std::int64_t i = 0; i < m; ++i) std::fill_n(c + i * ldc, n, Number{0});
}

/// Row i of C at a time; B transposed is read by strides: f64 serves checks, not training.
void multiply_plainly(bool transposed_a, bool transposed_b, std::int64_t m, std::int64_t n, std::int64_t k,
                      const double* a, std::int64_t lda, const double* b, std::int64_t ldb, bool keep,
                      double* c, std::int64_t ldc) {
  if (!keep) clear(m, n, c, ldc);
  for (std::int64_t i = 0; i < m; ++i) {
    double* const row = c + i * ldc;
    for (std::int64_t l = 0; l < k; ++l) {
      const double x = transposed_a ? a[l * lda + i] : a[i * lda + l];
      if (transposed_b) {
        for (std::int64_t j = 0; j < n; ++j) row[j] += x * b[j * ldb + l];
      } else {
        for (std::int64_t j = 0; j < n; ++j) row[j] += x * b[l * ldb + j];
      }
    }
  }
}

template <class Number>
void run(Transpose transpose_a, Transpose transpose_b, std::int64_t m, std::int64_t n, std::int64_t k,
         const Number* a, std::int64_t lda, const Number* b, std::int64_t ldb, Number beta, Number* c,
         std::int64_t ldc) {
  validate(transpose_a, transpose_b, m, n, k, lda, ldb, beta, ldc);
  if (m == 0 || n == 0) return;
  const bool keep = beta != Number{0};
  if (k == 0) {
    if (!keep) clear(m, n, c, ldc);
    return;
  }
  const bool transposed_a = transpose_a == Transpose::yes, transposed_b = transpose_b == Transpose::yes;
  const FlushToZero flush;
  if constexpr (std::is_same_v<Number, float>) {
    multiply({transposed_a, transposed_b, m, n, k, a, lda, b, ldb, keep, c, ldc});
  } else {
    multiply_plainly(transposed_a, transposed_b, m, n, k, a, lda, b, ldb, keep, c, ldc);
  }
}

/// Blocks of C for separate threads, from the shape alone: about 1/32 of the work each, but not so small that
/// packing is done over and over.
struct Blocks {
  std::int64_t rows, columns;
};
Blocks blocks_for(std::int64_t m, std::int64_t n, std::int64_t k) {
  Blocks blocks{m, n};
  const auto flops = [&](std::int64_t rows, std::int64_t columns) {
    return 2.0 * static_cast<double>(rows) * static_cast<double>(columns) * static_cast<double>(k);
  };
  const double target = std::max(2e6, flops(m, n) / 32);
  const auto halve = [](std::int64_t size, std::int64_t unit) { return (size / 2 + unit - 1) / unit * unit; };
  while (flops(blocks.rows, blocks.columns) > target) {
    if (blocks.rows >= 128 && (blocks.rows >= 256 || blocks.columns < 512)) {
      blocks.rows = halve(blocks.rows, 2);
    } else if (blocks.columns >= 128) {
      blocks.columns = halve(blocks.columns, detail::tile_columns);
    } else {
      break;
    }
  }
  return blocks;
}

template <class Number>
void run_parallel(Transpose transpose_a, Transpose transpose_b, std::int64_t m, std::int64_t n,
                  std::int64_t k, const Number* a, std::int64_t lda, const Number* b, std::int64_t ldb,
                  Number beta, Number* c, std::int64_t ldc) {
  validate(transpose_a, transpose_b, m, n, k, lda, ldb, beta, ldc);
  if (m == 0 || n == 0) return;
  const Blocks blocks = blocks_for(m, n, k);
  const std::int64_t down = (m + blocks.rows - 1) / blocks.rows;
  const std::int64_t across = (n + blocks.columns - 1) / blocks.columns;
  // The cost model's 16 operations per nanosecond are those of a plain loop; these are several times faster.
  constexpr double speedup = sizeof(Number) == 4 ? 6 : 0.5;
  const double flops = 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  const Cost cost{.flops = flops / speedup / static_cast<double>(down * across)};
  parallel_for(down * across, 1, cost, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t block = begin; block < end; ++block) {
      const std::int64_t row = block / across * blocks.rows, column = block % across * blocks.columns;
      run(transpose_a, transpose_b, std::min(blocks.rows, m - row), std::min(blocks.columns, n - column), k,
          a + (transpose_a == Transpose::yes ? row : row * lda), lda,
          b + (transpose_b == Transpose::yes ? column * ldb : column), ldb, beta, c + row * ldc + column,
          ldc);
    }
  });
}

}  // namespace

void gemm(Transpose transpose_a, Transpose transpose_b, std::int64_t m, std::int64_t n, std::int64_t k,
          const float* a, std::int64_t lda, const float* b, std::int64_t ldb, float beta, float* c,
          std::int64_t ldc) {
  run(transpose_a, transpose_b, m, n, k, a, lda, b, ldb, beta, c, ldc);
}
void gemm_parallel(Transpose transpose_a, Transpose transpose_b, std::int64_t m, std::int64_t n,
                   std::int64_t k, const float* a, std::int64_t lda, const float* b, std::int64_t ldb,
                   float beta, float* c, std::int64_t ldc) {
  run_parallel(transpose_a, transpose_b, m, n, k, a, lda, b, ldb, beta, c, ldc);
}
void gemm(Transpose transpose_a, Transpose transpose_b, std::int64_t m, std::int64_t n, std::int64_t k,
          const double* a, std::int64_t lda, const double* b, std::int64_t ldb, double beta, double* c,
          std::int64_t ldc) {
  run(transpose_a, transpose_b, m, n, k, a, lda, b, ldb, beta, c, ldc);
}
void gemm_parallel(Transpose transpose_a, Transpose transpose_b, std::int64_t m, std::int64_t n,
                   std::int64_t k, const double* a, std::int64_t lda, const double* b, std::int64_t ldb,
                   double beta, double* c, std::int64_t ldc) {
  run_parallel(transpose_a, transpose_b, m, n, k, a, lda, b, ldb, beta, c, ldc);
}

}  // namespace headlab::kernels
