// The innermost loops of gemm: one tile of C held in registers, and packing of its operands. For gemm.cpp
// only.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include "framework/kernels/simd.h"

namespace headlab::kernels::detail {

// A tile is tile_rows × (16·tile_vectors) outputs: as many accumulators as registers allow beside the row of
// B (28 of 32 registers, or 12 of 16).
constexpr int tile_rows = HEADLAB_AVX512 ? 14 : 6;
constexpr int tile_vectors = HEADLAB_AVX512 ? 2 : 1;
constexpr std::int64_t tile_columns = lanes * tile_vectors;
// A few rows alone take wider tiles: it needs eight accumulators at least to keep the multipliers busy.
constexpr int few_rows = HEADLAB_AVX512 ? 3 : 2;
constexpr int few_rows_vectors = 2 * tile_vectors;
constexpr int one_row_vectors = 4 * tile_vectors;

constexpr int most_rows(int vectors) {
  return vectors <= tile_vectors ? tile_rows : vectors <= few_rows_vectors ? few_rows : 1;
}
constexpr int widest(std::int64_t rows) {
  return rows == 1 ? one_row_vectors : rows <= few_rows ? few_rows_vectors : tile_vectors;
}

/// How a tile finds a[i, k].
enum class LayoutA {
  rows,    ///< a[i·a_step + k]: A as stored
  columns  ///< a[k·a_step + i]: A transposed, or packed
};

/// What is special about a tile's last vector.
enum class Edge {
  none,    ///< all columns exist
  masked,  ///< Tiles::last says which
  low      ///< masked, and at most eight
};

/// Some tiles of the same height, one under another.
struct Tiles {
  std::int64_t count;
  const float* a;
  std::int64_t a_step;
  std::int64_t a_next;  ///< from one tile's a to the next one's
  const float* b;       ///< b[k·b_step + j]
  std::int64_t b_step;
  std::int64_t depth;  ///< 1 … gemm_block_k
  float* c;
  std::int64_t c_step;
  const float* start;  ///< what the sums are added to: C itself, a row for all rows, or nothing (null)
  std::int64_t start_step;
  mask16 last;  ///< columns that exist in the last vector
};

/// body(0), …, body(n - 1), with the numbers known to the compiler.
template <int n, class Body>
HEADLAB_INLINE void unrolled(const Body& body) {
  [&]<int... i>(std::integer_sequence<int, i...>) __attribute__((always_inline)) {
    (body(std::integral_constant<int, i>{}), ...);
  }
  (std::make_integer_sequence<int, n>{});
}

template <int rows, int vectors, LayoutA layout, Edge edge>
void multiply_tiles(const Tiles& tiles) {
  const std::int64_t a_step = tiles.a_step, b_step = tiles.b_step, c_step = tiles.c_step;
  const mask16 last = tiles.last;
  const std::int64_t start_step = tiles.start_step;
  float* c = tiles.c;
  const float* start = tiles.start;
  const bool accumulate = start != nullptr;
  for (std::int64_t tile = 0; tile < tiles.count; ++tile, c += rows * c_step) {
    const float* a = tiles.a + tile * tiles.a_next;
    const float* b = tiles.b;
    f32x16 sum[rows][vectors];
    unrolled<rows>([&](auto i) __attribute__((always_inline)) {
      unrolled<vectors>([&](auto j) __attribute__((always_inline)) { sum[i][j] = zero(); });
    });
    if (tiles.depth >= 64) {  // long enough for C to arrive meanwhile
      unrolled<rows>([&](auto i) __attribute__((always_inline)) {
        unrolled<vectors>([&](auto j) __attribute__((always_inline)) {
          __builtin_prefetch(c + i * c_step + lanes * j, 1);
        });
      });
    }
#pragma GCC unroll 4
    for (std::int64_t k = tiles.depth; k > 0; --k) {
      f32x16 row[vectors];
      unrolled<vectors>([&](auto j) __attribute__((always_inline)) {
        constexpr bool whole = edge == Edge::none || j < vectors - 1;
        row[j] = whole ? load(b + lanes * j) : load_masked(b + lanes * j, last, 0.0F);
      });
      unrolled<rows>([&](auto i) __attribute__((always_inline)) {
        const f32x16 x = broadcast(layout == LayoutA::rows ? a[i * a_step] : a[i]);
        unrolled<vectors>([&](auto j)
                              __attribute__((always_inline)) { sum[i][j] = fma(x, row[j], sum[i][j]); });
      });
      a += layout == LayoutA::rows ? 1 : a_step;
      b += b_step;
    }
    unrolled<rows>([&](auto i) __attribute__((always_inline)) {
      unrolled<vectors>([&](auto j) __attribute__((always_inline)) {
        float* to = c + i * c_step + lanes * j;
        const float* from = start + i * start_step + lanes * j;
        if constexpr (edge == Edge::none || j < vectors - 1) {
          store(to, accumulate ? load(from) + sum[i][j] : sum[i][j]);
        } else {
          const f32x16 x = accumulate ? load_masked(from, last, 0.0F) + sum[i][j] : sum[i][j];
          edge == Edge::low ? store_low_masked(to, x, last) : store_masked(to, x, last);
        }
      });
    });
    if (accumulate) start += rows * start_step;
  }
}

using TileFunction = void (*)(const Tiles&);
/// For 1 … most_rows(vectors) rows.
using TileFunctions = std::array<TileFunction, tile_rows + 1>;

template <int vectors, LayoutA layout, Edge edge>
constexpr TileFunctions tile_functions() {
  return []<int... i>(std::integer_sequence<int, i...>) {
    return TileFunctions{nullptr, multiply_tiles<i + 1, vectors, layout, edge>...};
  }
  (std::make_integer_sequence<int, most_rows(vectors)>{});
}

/// transpose() of rows that come from afar: what follows is asked for meanwhile, at the end of a row that of
/// `next`, the next rows to be transposed (null: none).
inline void transpose_from_afar(const float* from, std::int64_t from_step, std::int64_t rows,
                                std::int64_t columns, float* to, std::int64_t to_step, const float* next) {
  constexpr std::int64_t at_once = 2 * lanes, ahead = 4 * lanes;
  for (std::int64_t j = 0; j < columns; j += at_once) {
    const std::int64_t wanted = j + ahead;
    const float* const source = wanted < columns ? from + wanted : next ? next + wanted - columns : nullptr;
    for (std::int64_t i = 0; source && i < rows; ++i) {
      __builtin_prefetch(source + i * from_step);
      __builtin_prefetch(source + i * from_step + lanes);
    }
    transpose(from + j, from_step, rows, std::min(at_once, columns - j), to + j * to_step, to_step);
  }
}

/// `count` tiles of `rows` ≤ tile_rows rows of op(A) each, `depth` long: op(A)[t·rows + i, k] becomes
/// to[t·tile_step + k·rows + i]. Stored transposed, all of them are read along at a time, as memory likes it.
inline void pack_a(bool transposed, const float* a, std::int64_t lda, std::int64_t count, std::int64_t rows,
                   std::int64_t depth, float* to, std::int64_t tile_step) {
  // Whole vectors are written, and what they spoil is written again; the last ones would reach past the end,
  // where another thread may have packed already.
  const std::int64_t whole = std::max<std::int64_t>(0, depth - (lanes - 1) / rows);
  if (transposed) {
    constexpr std::int64_t ahead = 12;  // rows of memory: they lie too far apart to be fetched unasked
    const mask16 wanted = first_lanes(rows);
    for (std::int64_t k = 0; k < whole; ++k) {
      if (k + ahead < whole) {
        for (std::int64_t i = 0; i < count * rows; i += lanes) __builtin_prefetch(a + (k + ahead) * lda + i);
      }
      for (std::int64_t t = 0; t < count; ++t) {
        store(to + t * tile_step + k * rows, load_masked(a + k * lda + t * rows, wanted, 0.0F));
      }
    }
  } else {
    for (std::int64_t t = 0; t < count; ++t) {
      const float* const tile = a + t * rows * lda;
      transpose_from_afar(tile, lda, rows, whole, to + t * tile_step, rows,
                          t + 1 < count ? tile + rows * lda : nullptr);
    }
  }
  for (std::int64_t t = 0; t < count; ++t) {
    for (std::int64_t k = whole; k < depth; ++k) {
      for (std::int64_t i = 0; i < rows; ++i) {
        const std::int64_t row = t * rows + i;
        to[t * tile_step + k * rows + i] = transposed ? a[k * lda + row] : a[row * lda + k];
      }
    }
  }
}

/// `columns` columns of op(B), `depth` long, in panels of `width` (a multiple of 16, the last one as wide as
/// it needs to be): column p·width + j becomes to[p·width·depth + k·width + j]. What lies past `columns` is
/// not used.
inline void pack_b(bool transposed, const float* b, std::int64_t ldb, std::int64_t columns,
                   std::int64_t depth, float* to, std::int64_t width) {
  const std::int64_t whole = columns / width * width, rest = columns - whole;
  const std::int64_t rest_width = (rest + lanes - 1) / lanes * lanes;
  if (transposed) {
    for (std::int64_t j = 0; j < columns; j += transpose_rows) {
      const std::int64_t panel = j / width * width;
      const std::int64_t next = j + transpose_rows;
      transpose_from_afar(b + j * ldb, ldb, std::min(transpose_rows, columns - j), depth,
                          to + panel * depth + j - panel, panel < whole ? width : rest_width,
                          next + transpose_rows <= columns ? b + next * ldb : nullptr);
    }
    return;
  }
  constexpr std::int64_t ahead = 12;
  const std::int64_t last = rest_width - lanes;
  const mask16 wanted = first_lanes(rest - last);
  for (std::int64_t k = 0; k < depth; ++k) {
    if (k + ahead < depth) {
      for (std::int64_t j = 0; j < columns; j += lanes) __builtin_prefetch(b + (k + ahead) * ldb + j);
    }
    for (std::int64_t panel = 0; panel < whole; panel += width) {
      for (std::int64_t j = 0; j < width; j += lanes) {
        store(to + panel * depth + k * width + j, load(b + k * ldb + panel + j));
      }
    }
    if (rest == 0) continue;
    float* const row = to + whole * depth + k * rest_width;
    for (std::int64_t j = 0; j < last; j += lanes) store(row + j, load(b + k * ldb + whole + j));
    store(row + last, load_masked(b + k * ldb + whole + last, wanted, 0.0F));
  }
}

/// Asks for parts `first` … `last` - 1 of `parts` of a panel of B that will be packed next.
inline void prefetch_b(bool transposed, const float* b, std::int64_t ldb, std::int64_t columns,
                       std::int64_t depth, std::int64_t first, std::int64_t last, std::int64_t parts) {
  const std::int64_t rows = transposed ? columns : depth, length = transposed ? depth : columns;
  for (std::int64_t i = rows * first / parts; i < rows * last / parts; ++i) {
    for (std::int64_t j = 0; j < length; j += 16) __builtin_prefetch(b + i * ldb + j, 0, 2);
  }
}

}  // namespace headlab::kernels::detail
