#include "framework/kernels/gemm_multiply.h"

#include <array>
#include <utility>

#include "framework/kernels/scratch.h"

namespace headlab::kernels::detail {
namespace {

// Most tiles computed at a time; between them the next panel of B is asked for.
constexpr std::int64_t most_tiles = 8;

/// [edge] for one width of tile. Only tiles of the usual width come without masks (which cost a multiplier's
/// time with AVX-512 too), and only AVX2 gains from knowing that half of a vector is left.
using Edges = std::array<TileFunctions, 3>;
template <int vectors, LayoutA layout>
constexpr Edges edges() {
  constexpr Edge whole = vectors <= tile_vectors ? Edge::none : Edge::masked;
  constexpr Edge half = vectors <= tile_vectors && !HEADLAB_AVX512 ? Edge::low : Edge::masked;
  return {tile_functions<vectors, layout, whole>(), tile_functions<vectors, layout, Edge::masked>(),
          tile_functions<vectors, layout, half>()};
}
template <LayoutA layout, int... i>
constexpr std::array<Edges, sizeof...(i)> widths(std::integer_sequence<int, i...>) {
  return {edges<i + 1, layout>()...};
}
/// [layout of A][vectors - 1][edge][rows]
constexpr std::array tile_table = {
    widths<LayoutA::rows>(std::make_integer_sequence<int, one_row_vectors>{}),
    widths<LayoutA::columns>(std::make_integer_sequence<int, one_row_vectors>{})};

Edge edge_of(std::int64_t last) {
  return last == lanes ? Edge::none : last > lanes / 2 ? Edge::masked : Edge::low;
}

std::int64_t round_up(std::int64_t count) { return (count + lanes - 1) / lanes * lanes; }

// Packing is worth its price where many tiles read what is packed, or where rows lie so far apart that they
// share sets of the cache (measured).
bool far_apart(std::int64_t step) { return step % 256 == 0; }
// A few rows times a transposed B: to transpose B would cost more than to multiply it.
bool turns(const Product& p, std::int64_t rows) { return p.transposed_b && rows <= 2 * lanes; }
bool packing_a_pays(const Product& p, std::int64_t rows, std::int64_t columns) {
  if (turns(p, rows) || rows <= few_rows) return false;
  const std::int64_t panels = columns / tile_columns;
  // Rows of A are read along, which goes as fast as reading a copy while few panels of B pass by.
  if (!p.transposed_a) return panels > (p.lda % 1024 == 0 ? 3 : 7);
  return panels > (far_apart(p.lda) ? 3 : 15);
}
bool packing_b_pays(const Product& p, std::int64_t rows) {
  return p.transposed_b || rows > (far_apart(p.ldb) ? 4 : 18) * tile_rows;
}

/// Cᵀ = B·op(A)ᵀ: B is read as it lies, a tile has rows of B one under another and rows of C side by side.
void multiply_turned(const Product& p, std::int64_t first_row, std::int64_t rows, const Region& r) {
  constexpr std::int64_t most_wide = lanes * tile_vectors;
  const std::int64_t depth = r.last_k - r.first_k;
  const Scratch<float> turned(depth * most_wide);  // op(A)ᵀ, [k, width]
  alignas(64) float tile[tile_rows * most_wide];
  for (std::int64_t first = first_row; first < first_row + rows; first += most_wide) {
    const std::int64_t count = std::min(most_wide, first_row + rows - first);
    const std::int64_t vectors = (count + lanes - 1) / lanes, width = vectors * lanes;
    pack_b(!p.transposed_a, p.at_a(first, r.first_k), p.lda, count, depth, turned.data(), width);
    const auto& functions = tile_table[static_cast<std::size_t>(LayoutA::rows)][vectors - 1][0];
    for (std::int64_t column = r.first_column; column < r.last_column; column += tile_rows) {
      const std::int64_t height = std::min<std::int64_t>(tile_rows, r.last_column - column);
      const auto for_outputs = [&](const auto& body) {
        for (std::int64_t i = 0; i < count; ++i) {
          for (std::int64_t j = 0; j < height; ++j) body(first + i, column + j, tile[j * width + i]);
        }
      };
      const bool starts = r.continues || p.start != nullptr;
      if (starts) {
        const float* start = r.continues ? p.c : p.start;
        const std::int64_t step = r.continues ? p.ldc : p.start_step;
        std::fill_n(tile, height * width, 0.0F);
        for_outputs([&](std::int64_t i, std::int64_t j, float& x) { x = start[i * step + j]; });
      }
      for (std::int64_t first_k = r.first_k; first_k < r.last_k; first_k += gemm_block_k) {
        functions[height]({.count = 1,
                           .a = p.at_b(first_k, column),
                           .a_step = p.ldb,
                           .a_next = 0,
                           .b = turned.data() + (first_k - r.first_k) * width,
                           .b_step = width,
                           .depth = std::min(gemm_block_k, r.last_k - first_k),
                           .c = tile,
                           .c_step = width,
                           .start = starts || first_k > r.first_k ? tile : nullptr,
                           .start_step = width,
                           .last = first_lanes(lanes)});
      }
      for_outputs([&](std::int64_t i, std::int64_t j, float& x) { p.c[i * p.ldc + j] = x; });
    }
  }
}

}  // namespace

TileFunction tile_function(LayoutA layout, std::int64_t rows, std::int64_t columns) {
  const std::int64_t vectors = (columns + lanes - 1) / lanes, last = columns - (vectors - 1) * lanes;
  return tile_table[static_cast<std::size_t>(layout)][static_cast<std::size_t>(vectors - 1)]
                   [static_cast<std::size_t>(edge_of(last))][static_cast<std::size_t>(rows)];
}

bool worth_packing(const Product& p, bool operand_a) {
  return operand_a ? packing_a_pays(p, p.m, p.n) : packing_b_pays(p, p.m);
}

std::int64_t chunk_of_k(std::int64_t k) {
  constexpr std::int64_t most_blocks = 4;
  const std::int64_t blocks = (k + gemm_block_k - 1) / gemm_block_k;
  const std::int64_t chunks = (blocks + most_blocks - 1) / most_blocks;
  return std::min(k, (blocks + chunks - 1) / chunks * gemm_block_k);
}

std::int64_t packed_a_size(const Product& p, std::int64_t depth) { return p.m * depth; }
std::int64_t packed_b_size(const Product& p, std::int64_t depth) { return round_up(p.n) * depth; }

namespace {
/// Packs tiles of A for one block of k, side by side as far as they are alike; `to` is where the first row
/// is.
void pack_tiles(const Product& p, const RowTiles& tiles, std::int64_t first_tile, std::int64_t last_tile,
                std::int64_t first_k, std::int64_t depth, float* to) {
  const std::int64_t first_row = tiles.first_row(first_tile);
  std::int64_t count = 0;
  for (std::int64_t tile = first_tile; tile < last_tile; tile += count) {
    const std::int64_t row = tiles.first_row(tile), height = tiles.height(tile);
    count = std::min({tiles.alike(tile), last_tile - tile, most_tiles});
    pack_a(p.transposed_a, p.at_a(row, first_k), p.lda, count, height, depth, to + (row - first_row) * depth,
           height * depth);
  }
}
}  // namespace

void pack_rows(const Product& p, const RowTiles& tiles, const Region& r, float* packed_a) {
  for (std::int64_t first_k = r.first_k; first_k < r.last_k; first_k += gemm_block_k) {
    const std::int64_t depth = std::min(gemm_block_k, r.last_k - first_k);
    float* const block = packed_a + p.m * (first_k - r.first_k);
    pack_tiles(p, tiles, r.first_tile, r.last_tile, first_k, depth,
               block + tiles.first_row(r.first_tile) * depth);
  }
}

void pack_columns(const Product& p, const Region& r, float* packed_b) {
  for (std::int64_t first_k = r.first_k; first_k < r.last_k; first_k += gemm_block_k) {
    const std::int64_t depth = std::min(gemm_block_k, r.last_k - first_k);
    float* const block = packed_b + round_up(p.n) * (first_k - r.first_k);
    pack_b(p.transposed_b, p.at_b(first_k, r.first_column), p.ldb, r.last_column - r.first_column, depth,
           block + r.first_column * depth, panel_width);
  }
}

void multiply(const Product& p, const RowTiles& tiles, const Region& r, const Packed& packed) {
  const std::int64_t rows = tiles.first_row(r.last_tile) - tiles.first_row(r.first_tile);
  const std::int64_t width = r.last_column - r.first_column;
  if (turns(p, rows) && packed.a == nullptr && packed.b == nullptr) {
    return multiply_turned(p, tiles.first_row(r.first_tile), rows, r);
  }
  const bool packs_a = !packed.a && packing_a_pays(p, rows, width);
  const bool packs_b = !packed.b && packing_b_pays(p, rows);
  const bool a_is_packed = packed.a || packs_a, b_is_packed = packed.b || packs_b;
  const LayoutA layout = a_is_packed || p.transposed_a ? LayoutA::columns : LayoutA::rows;
  const std::int64_t panel_columns = std::min(
      b_is_packed && (packed.b || p.transposed_b) ? tile_columns : lanes * widest(rows), round_up(width));

  // A block of A, [block_tiles, chunk], stays in the second-level cache while panels of B pass by, and so
  // does the panel of C that grows by block after block of k. Where B is packed here, each block of rows
  // packs it again: then rather many rows and fewer steps of k.
  const std::int64_t all_k = r.last_k - r.first_k;
  std::int64_t chunk = chunk_of_k(all_k);
  if (packs_b) {
    const std::int64_t fits = most_floats_held / rows / gemm_block_k * gemm_block_k;
    chunk = std::min(chunk, std::max(fits, gemm_block_k));
  }
  const std::int64_t most_held = std::max<std::int64_t>(most_floats_held / chunk, tile_rows);
  const std::int64_t row_blocks = (rows + most_held - 1) / most_held;
  const std::int64_t block_tiles = (r.last_tile - r.first_tile + row_blocks - 1) / row_blocks;
  const std::int64_t panel = packs_b ? std::min(all_k, gemm_block_k) * panel_columns : 0;
  const Scratch<float> scratch(panel + (packs_a ? block_tiles * tile_rows * chunk : 0));
  float* const panel_b = scratch.data();
  float* const block_a = panel_b + panel;

  for (std::int64_t first_tile = r.first_tile; first_tile < r.last_tile; first_tile += block_tiles) {
    const std::int64_t last_tile = std::min(first_tile + block_tiles, r.last_tile);
    const std::int64_t first_row = tiles.first_row(first_tile);
    const std::int64_t block_rows = tiles.first_row(last_tile) - first_row;
    for (std::int64_t chunk_k = r.first_k; chunk_k < r.last_k; chunk_k += chunk) {
      const std::int64_t last_k = std::min(chunk_k + chunk, r.last_k);
      for (std::int64_t k = chunk_k; packs_a && k < last_k; k += gemm_block_k) {
        pack_tiles(p, tiles, first_tile, last_tile, k, std::min(gemm_block_k, last_k - k),
                   block_a + block_rows * (k - chunk_k));
      }
      for (std::int64_t column = r.first_column; column < r.last_column; column += panel_columns) {
        const std::int64_t columns = std::min(panel_columns, r.last_column - column);
        const std::int64_t vectors = (columns + lanes - 1) / lanes;
        const std::int64_t last = columns - (vectors - 1) * lanes;
        const auto& functions = tile_table[static_cast<std::size_t>(layout)][vectors - 1]
                                          [static_cast<std::size_t>(edge_of(last))];
        for (std::int64_t first_k = chunk_k; first_k < last_k; first_k += gemm_block_k) {
          const std::int64_t depth = std::min(gemm_block_k, last_k - first_k);
          const bool adds = r.continues || first_k > r.first_k;
          const float* a = nullptr;  // packed, from first_row on
          if (packs_a) {
            a = block_a + block_rows * (first_k - chunk_k);
          } else if (packed.a) {
            a = packed.a + p.m * (first_k - r.first_k) + first_row * depth;
          }
          const float* b = p.at_b(first_k, column);
          std::int64_t b_step = p.ldb;
          if (packs_b) {
            pack_b(p.transposed_b, b, p.ldb, columns, depth, panel_b, vectors * lanes);
            b = panel_b;
            b_step = vectors * lanes;
          } else if (packed.b) {
            b = packed.b + round_up(p.n) * (first_k - r.first_k) + column * depth;
            b_step = vectors * lanes;
          }
          // What will be packed next: B's next block of k, or the next panel's first.
          const bool goes_down = first_k + gemm_block_k < last_k;
          const std::int64_t next_k = goes_down ? first_k + gemm_block_k : chunk_k;
          const std::int64_t next_column = goes_down ? column : column + panel_columns;
          std::int64_t count = 0;
          for (std::int64_t tile = first_tile; tile < last_tile; tile += count) {
            const std::int64_t height = tiles.height(tile), row = tiles.first_row(tile);
            count = std::min({tiles.alike(tile), last_tile - tile, most_tiles});
            if (packs_b && next_column < r.last_column) {
              prefetch_b(p.transposed_b, p.at_b(next_k, next_column), p.ldb,
                         std::min(panel_columns, r.last_column - next_column),
                         std::min(gemm_block_k, last_k - next_k), tile - first_tile,
                         tile - first_tile + count, last_tile - first_tile);
            }
            float* const c = p.c + row * p.ldc + column;
            functions[height]({.count = count,
                               .a = a ? a + (row - first_row) * depth : p.at_a(row, first_k),
                               .a_step = a ? height : p.lda,
                               .a_next = height * (a                ? depth
                                                   : p.transposed_a ? 1
                                                                    : p.lda),
                               .b = b,
                               .b_step = b_step,
                               .depth = depth,
                               .c = c,
                               .c_step = p.ldc,
                               .start = adds      ? c
                                        : p.start ? p.start + row * p.start_step + column
                                                  : nullptr,
                               .start_step = adds ? p.ldc : p.start_step,
                               .last = first_lanes(last)});
          }
        }
      }
    }
  }
}

}  // namespace headlab::kernels::detail
