#include <algorithm>
#include <bit>

#include "framework/core/parallel.h"
#include "framework/kernels/accumulate.h"
#include "framework/kernels/gemm_multiply.h"
#include "framework/kernels/scratch.h"

namespace headlab::kernels::detail {
namespace {

/// How a product is cut for several threads, from its shape alone: C in blocks of whole columns, which all
/// read A, or of whole rows, which all read B. What all read is packed beforehand: A where it is small enough
/// to stay in every thread's cache, else B, which then passes by. Of the other, each number belongs to one
/// block, which packs it where and when it needs it.
struct Plan {
  bool shares_a;
  std::int64_t units, blocks;  ///< panels of columns or tiles of rows, in so many blocks
  std::int64_t depth;          ///< steps of k packed beforehand at a time
  std::int64_t k_parts;        ///< into which k is cut beside: 1, or its blocks

  /// Where C's block `index` lies.
  void place(std::int64_t index, const Product& p, Region& region) const {
    const std::int64_t first = index * units / blocks, last = (index + 1) * units / blocks;
    if (shares_a) {
      region.first_column = first * panel_width;
      region.last_column = std::min(last * panel_width, p.n);
    } else {
      region.first_tile = first;
      region.last_tile = last;
    }
  }
};
Plan plan_for(const Product& p, const RowTiles& tiles) {
  Plan plan{};
  plan.depth = chunk_of_k(p.k);
  plan.shares_a = p.m <= p.n && p.m * plan.depth <= most_floats_held;
  plan.units = plan.shares_a ? (p.n + panel_width - 1) / panel_width : tiles.count();
  // As many parts as have 2 million operations each, up to 32: smaller ones cost more to hand out than they
  // save.
  const double products = static_cast<double>(p.m) * static_cast<double>(p.n) * static_cast<double>(p.k);
  auto parts = static_cast<std::int64_t>(std::clamp(products / 1e6, 1.0, 32.0));
  // Few outputs that are long sums, as gradients of small weights: their blocks of k at the same time, added
  // up in order afterwards.
  const bool cuts_k = p.m * p.n <= 16384 && p.k > gemm_block_k && parts > 1;
  plan.k_parts = cuts_k ? (p.k + gemm_block_k - 1) / gemm_block_k : 1;
  parts /= plan.k_parts;
  if (cuts_k && plan.k_parts % 2 != 0) parts = std::max<std::int64_t>(parts, 2);
  // A power of two, so that two, four and eight threads have equal shares; at least six tiles high, or a
  // panel of B is not worth fetching.
  const std::int64_t most = plan.shares_a ? plan.units : plan.units / 6;
  plan.blocks = static_cast<std::int64_t>(
      std::bit_floor(static_cast<std::uint64_t>(std::max<std::int64_t>(std::min(parts, most), 1))));
  return plan;
}

/// Packs op(A) into `a` and op(B) into `b` where they are wanted.
void pack(const Product& p, const RowTiles& tiles, const Region& all, float* a, float* b) {
  constexpr std::int64_t tiles_at_once = 8, columns_at_once = 4 * panel_width;
  const std::int64_t row_pieces = a ? (tiles.count() + tiles_at_once - 1) / tiles_at_once : 0;
  const std::int64_t column_pieces = b ? (p.n + columns_at_once - 1) / columns_at_once : 0;
  const std::int64_t floats = ((a ? p.m : 0) + (b ? p.n : 0)) * (all.last_k - all.first_k);
  const Cost cost{.bytes = 8 * static_cast<double>(floats) / static_cast<double>(row_pieces + column_pieces)};
  parallel_for(row_pieces + column_pieces, 1, cost, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t piece = begin; piece < end; ++piece) {
      Region part = all;
      if (piece < row_pieces) {
        part.first_tile = piece * tiles_at_once;
        part.last_tile = std::min(part.first_tile + tiles_at_once, tiles.count());
        pack_rows(p, tiles, part, a);
      } else {
        part.first_column = (piece - row_pieces) * columns_at_once;
        part.last_column = std::min(part.first_column + columns_at_once, p.n);
        pack_columns(p, part, b);
      }
    }
  });
}

/// The price of one of `pieces` equal parts of a product over `depth` steps of k.
Cost price_of(const Product& p, std::int64_t depth, std::int64_t pieces) {
  // The cost model's 16 operations per nanosecond are those of a plain loop; these are several times faster.
  constexpr double faster_than_plain_loops = 6;
  const double products = static_cast<double>(p.m) * static_cast<double>(p.n) * static_cast<double>(depth);
  return {.flops = 2 * products / faster_than_plain_loops / static_cast<double>(pieces)};
}

/// Each block of k by itself: the first into C, the others into memory of their own, from where they are
/// added to C in order. The same sums as one after the other.
void multiply_blocks_of_k(const Product& p, const RowTiles& tiles, const Plan& plan) {
  const std::int64_t size = p.m * p.n;
  const Scratch<float> sums((plan.k_parts - 1) * size);
  const std::int64_t pieces = plan.k_parts * plan.blocks;
  parallel_for(pieces, 1, price_of(p, p.k, pieces), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t piece = begin; piece < end; ++piece) {
      const std::int64_t part = piece / plan.blocks;
      Product own = p;
      if (part > 0) {
        own.c = sums.data() + (part - 1) * size;
        own.ldc = p.n;
        own.start = nullptr;
      }
      const std::int64_t first_k = part * gemm_block_k;
      Region region{0, tiles.count(), 0, p.n, first_k, std::min(p.k, first_k + gemm_block_k), false};
      plan.place(piece % plan.blocks, p, region);
      multiply(own, tiles, region, {});
    }
  });
  const Cost cost{.bytes = 4.0 * static_cast<double>(p.n * (plan.k_parts + 1))};
  parallel_for(p.m, grain_for(cost), cost, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      for (std::int64_t part = 1; part < plan.k_parts; ++part) {
        accumulate(sums.data() + (part - 1) * size + i * p.n, p.c + i * p.ldc, p.n);
      }
    }
  });
}

/// The product by `plan`, without cutting k.
void multiply_blocks(const Product& p, const RowTiles& tiles, const Plan& plan, const GemmFinish& finish) {
  const bool packs = plan.blocks > 1 && worth_packing(p, plan.shares_a);
  const Scratch<float> scratch(!packs          ? 0
                               : plan.shares_a ? packed_a_size(p, plan.depth)
                                               : packed_b_size(p, plan.depth));
  float* const packed_a = packs && plan.shares_a ? scratch.data() : nullptr;
  float* const packed_b = packs && !plan.shares_a ? scratch.data() : nullptr;
  const std::int64_t depth = packs ? plan.depth : p.k;
  for (std::int64_t first_k = 0; first_k < p.k; first_k += depth) {
    const Region all{0, tiles.count(), 0, p.n, first_k, std::min(p.k, first_k + depth), first_k > 0};
    if (packs) pack(p, tiles, all, packed_a, packed_b);
    parallel_for(plan.blocks, 1, price_of(p, all.last_k - first_k, plan.blocks),
                 [&](std::int64_t begin, std::int64_t end) {
                   for (std::int64_t block = begin; block < end; ++block) {
                     Region part = all;
                     plan.place(block, p, part);
                     multiply(p, tiles, part, {packed_a, packed_b});
                     if (!finish || part.last_k < p.k) continue;
                     const std::int64_t row = tiles.first_row(part.first_tile);
                     finish({row, tiles.first_row(part.last_tile) - row, part.first_column,
                             part.last_column - part.first_column});
                   }
                 });
  }
}

}  // namespace

void multiply_parallel(const Product& p, const GemmFinish& finish) {
  const RowTiles tiles(p.m);
  const Plan plan = plan_for(p, tiles);
  if (plan.k_parts > 1) {
    multiply_blocks_of_k(p, tiles, plan);
    if (finish) finish({0, p.m, 0, p.n});
    return;
  }
  // A shared B much larger than the caches would go to memory and back: as many of its columns at a time as
  // stay in a third-level cache.
  constexpr std::int64_t most_shared = std::int64_t{1} << 21;
  const std::int64_t wide = plan.shares_a ? p.n : std::max(most_shared / plan.depth, panel_width);
  const std::int64_t parts = (p.n + wide - 1) / wide;
  const std::int64_t panels = (p.n + panel_width - 1) / panel_width;
  for (std::int64_t part = 0; part < parts; ++part) {
    const std::int64_t first = part * panels / parts * panel_width;
    const std::int64_t last = std::min((part + 1) * panels / parts * panel_width, p.n);
    Product own = p;
    own.n = last - first;
    own.b = p.at_b(0, first);
    own.c = p.c + first;
    own.start = p.start == nullptr ? nullptr : p.start + first;
    const auto shifted = [&](const GemmBlock& block) {
      finish({block.row, block.rows, block.column + first, block.columns});
    };
    multiply_blocks(own, tiles, plan, finish ? GemmFinish(shifted) : GemmFinish());
  }
}

}  // namespace headlab::kernels::detail
