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

/// How a tile finds a[i, k].
enum class LayoutA {
  rows,    ///< a[i·a_step + k]: A as stored
  columns  ///< a[k·a_step + i]: A transposed, or packed
};

struct Tile {
  const float* a;
  std::int64_t a_step;
  const float* b;  ///< b[k·b_step + j]
  std::int64_t b_step;
  std::int64_t depth;  ///< 1 … gemm_block_k
  float* c;
  std::int64_t c_step;
  bool accumulate;  ///< add to C instead of overwriting it
  mask16 last;      ///< columns that exist in the last vector
};

/// body(0), …, body(n - 1), with the numbers known to the compiler.
template <int n, class Body>
HEADLAB_INLINE void unrolled(const Body& body) {
  [&]<int... i>(std::integer_sequence<int, i...>) __attribute__((always_inline)) {
    (body(std::integral_constant<int, i>{}), ...);
  }
  (std::make_integer_sequence<int, n>{});
}

template <int rows, int vectors, LayoutA layout, bool masked>
void multiply_tile(const Tile& tile) {
  f32x16 sum[rows][vectors];
  unrolled<rows>([&](auto i) __attribute__((always_inline)) {
    unrolled<vectors>([&](auto j) __attribute__((always_inline)) { sum[i][j] = zero(); });
  });
  const float* a = tile.a;
  const float* b = tile.b;
  const std::int64_t a_step = tile.a_step, b_step = tile.b_step;
  const mask16 last = tile.last;
  for (std::int64_t k = tile.depth; k > 0; --k) {
    f32x16 row[vectors];
    unrolled<vectors>([&](auto j) __attribute__((always_inline)) {
      row[j] = masked && j == vectors - 1 ? load_masked(b + lanes * j, last, 0.0F) : load(b + lanes * j);
    });
    unrolled<rows>([&](auto i) __attribute__((always_inline)) {
      const f32x16 x = broadcast(layout == LayoutA::rows ? a[i * a_step] : a[i]);
      unrolled<vectors>([&](auto j)
                            __attribute__((always_inline)) { sum[i][j] = fma(x, row[j], sum[i][j]); });
    });
    a += layout == LayoutA::rows ? 1 : a_step;
    b += b_step;
  }
  float* c = tile.c;
  const std::int64_t c_step = tile.c_step;
  unrolled<rows>([&](auto i) __attribute__((always_inline)) {
    unrolled<vectors>([&](auto j) __attribute__((always_inline)) {
      float* to = c + i * c_step + lanes * j;
      if (masked && j == vectors - 1) {
        store_masked(to, tile.accumulate ? load_masked(to, last, 0.0F) + sum[i][j] : sum[i][j], last);
      } else {
        store(to, tile.accumulate ? load(to) + sum[i][j] : sum[i][j]);
      }
    });
  });
}

using TileFunction = void (*)(const Tile&);
/// For 1 … tile_rows rows.
using TileFunctions = std::array<TileFunction, tile_rows + 1>;

template <int vectors, LayoutA layout, bool masked>
constexpr TileFunctions tile_functions() {
  return []<int... i>(std::integer_sequence<int, i...>) {
    return TileFunctions{nullptr, multiply_tile<i + 1, vectors, layout, masked>...};
  }
  (std::make_integer_sequence<int, tile_rows>{});
}

/// `rows` ≤ tile_rows rows of op(A), `depth` long, become to[k·rows + i]. Writes up to 16 floats past the
/// end.
inline void pack_a(bool transposed, const float* a, std::int64_t lda, std::int64_t rows, std::int64_t depth,
                   float* to) {
  if (transposed) {
    const mask16 wanted = first_lanes(rows);
    for (std::int64_t k = 0; k < depth; ++k) store(to + k * rows, load_masked(a + k * lda, wanted, 0.0F));
    return;
  }
  for (std::int64_t k = 0; k < depth; k += transpose_size) {
    transpose_block(a + k, lda, rows, std::min(transpose_size, depth - k), to + k * rows, rows);
  }
}

/// `columns` columns of op(B), `depth` long, become to[k·width + j], width a multiple of 16, the rest zero.
inline void pack_b(bool transposed, const float* b, std::int64_t ldb, std::int64_t columns,
                   std::int64_t depth, float* to, std::int64_t width) {
  if (transposed) {
    for (std::int64_t j = 0; j < width; j += transpose_size) {
      const std::int64_t rows = std::clamp<std::int64_t>(columns - j, 0, transpose_size);
      for (std::int64_t k = 0; k < depth; k += transpose_size) {
        transpose_block(b + j * ldb + k, ldb, rows, std::min(transpose_size, depth - k), to + k * width + j,
                        width);
      }
    }
    return;
  }
  for (std::int64_t j = 0; j < width; j += lanes) {
    const mask16 wanted = first_lanes(columns - j);
    for (std::int64_t k = 0; k < depth; ++k) {
      store(to + k * width + j, load_masked(b + k * ldb + j, wanted, 0.0F));
    }
  }
}

}  // namespace headlab::kernels::detail
