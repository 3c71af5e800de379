// The loops of gemm between its interface and its tiles: which parts of the operands are packed, and in which
// order tiles are computed. For gemm's own sources and streaming_product.h only.
#pragma once

#include <algorithm>
#include <cstdint>

#include "framework/kernels/gemm.h"
#include "framework/kernels/gemm_tile.h"

namespace headlab::kernels::detail {

/// C[m,n] = start + op(A)·op(B), in f32.
struct Product {
  bool transposed_a, transposed_b;
  std::int64_t m, n, k;
  const float* a;
  std::int64_t lda;
  const float* b;
  std::int64_t ldb;
  float* c;
  std::int64_t ldc;
  const float* start;       ///< C itself (beta = 1), a row that every row starts from, or null for nothing
  std::int64_t start_step;  ///< ldc, or 0

  const float* at_a(std::int64_t i, std::int64_t l) const {
    return a + (transposed_a ? l * lda + i : i * lda + l);
  }
  const float* at_b(std::int64_t l, std::int64_t j) const {
    return b + (transposed_b ? j * ldb + l : l * ldb + j);
  }
};

/// The rows of C in tiles: heights as equal as can be.
class RowTiles {
 public:
  explicit RowTiles(std::int64_t rows)
      : count_((rows + tile_rows - 1) / tile_rows), low_(rows / count_), higher_(rows % count_) {}
  std::int64_t count() const { return count_; }
  std::int64_t height(std::int64_t tile) const { return low_ + (tile < higher_ ? 1 : 0); }
  std::int64_t first_row(std::int64_t tile) const { return tile * low_ + std::min(tile, higher_); }
  /// Tiles of one height from this one on.
  std::int64_t alike(std::int64_t tile) const { return (tile < higher_ ? higher_ : count_) - tile; }

 private:
  std::int64_t count_, low_, higher_;  // the first higher_ tiles have one row more
};

/// Tiles first_tile … last_tile - 1 of columns first_column … last_column - 1, the sums over first_k … last_k
/// - 1.
struct Region {
  std::int64_t first_tile, last_tile;
  std::int64_t first_column, last_column;
  std::int64_t first_k, last_k;
  bool continues;  ///< C holds the sums up to first_k already
};

/// Columns of B packed side by side; blocks of columns start at multiples of it.
constexpr std::int64_t panel_width = tile_columns;

/// Steps of k that are worked on before C is left: as many blocks of gemm_block_k as a second-level cache has
/// room for, in equal parts.
std::int64_t chunk_of_k(std::int64_t k);
/// Floats of A that stay in a second-level cache while panels of B and C pass by.
constexpr std::int64_t most_floats_held = std::int64_t{768} * gemm_block_k;

/// Operands packed beforehand for the region's first_k … last_k - 1, of all rows and columns of the product,
/// or null.
struct Packed {
  const float* a = nullptr;
  const float* b = nullptr;
};
/// Whether A (else B) as a whole is worth packing.
bool worth_packing(const Product& p, bool operand_a);
/// The function for tiles of `rows` × `columns` outputs, at most tile_rows × tile_columns.
TileFunction tile_function(LayoutA layout, std::int64_t rows, std::int64_t columns);

/// Floats that `Packed` needs for `depth` steps of k.
std::int64_t packed_a_size(const Product& p, std::int64_t depth);
std::int64_t packed_b_size(const Product& p, std::int64_t depth);
/// Packs the region's rows (columns) for all its k into a buffer for the whole product.
void pack_rows(const Product& p, const RowTiles& tiles, const Region& region, float* packed_a);
void pack_columns(const Product& p, const Region& region, float* packed_b);

/// Computes the region; packs what pays and has not been packed. first_k is a multiple of gemm_block_k.
void multiply(const Product& p, const RowTiles& tiles, const Region& region, const Packed& packed);

/// The whole product, on several threads where that pays; `finish` as in gemm_bias_parallel().
void multiply_parallel(const Product& p, const GemmFinish& finish);

}  // namespace headlab::kernels::detail
