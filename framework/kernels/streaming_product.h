// The products of the streaming kernels: of a tile [keys, lanes], only what some query may see is multiplied,
// in whole vectors of queries. For streaming_*.cpp only.
//
// Leaving out what is blocked changes no bit: a blocked weight is exactly 0 and adds nothing to a chain.
#pragma once

#include <algorithm>
#include <cstdint>

#include "framework/core/profile.h"
#include "framework/kernels/gemm_multiply.h"
#include "framework/kernels/streaming_block.h"

namespace headlab::kernels::detail {

/// What the sums of a product are added to: nothing, zeros (which makes −0 to 0), or what is there already.
enum class Onto { nothing, zeros, sums };

/// C[m,n] = A·B in the order of gemm, straight through its tiles: operands of a few kilobytes
/// are in a cache and not worth packing, and gemm's preparations would take as long as the product.
inline void multiply_small(LayoutA layout, std::int64_t m, std::int64_t n, std::int64_t k, const float* a,
                           std::int64_t a_step, const float* b, std::int64_t b_step, Onto onto, float* c,
                           std::int64_t c_step) {
  alignas(64) static constexpr float zeros[tile_columns] = {};
  profile::count(2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k), 0);
  const RowTiles tiles(m);
  const std::int64_t a_row = layout == LayoutA::columns ? 1 : a_step;
  for (std::int64_t first_k = 0; first_k < k; first_k += gemm_block_k) {
    if (first_k > 0) onto = Onto::sums;
    Tiles t{.count = 0,
            .a = nullptr,
            .a_step = a_step,
            .a_next = 0,
            .b = nullptr,
            .b_step = b_step,
            .depth = std::min(gemm_block_k, k - first_k),
            .c = nullptr,
            .c_step = c_step,
            .start = nullptr,
            .start_step = onto == Onto::sums ? c_step : 0,
            .last = first_lanes(lanes)};
    const float* from = a + first_k * (layout == LayoutA::columns ? a_step : 1);
    for (std::int64_t column = 0; column < n; column += tile_columns) {
      const std::int64_t columns = std::min(tile_columns, n - column);
      t.last = first_lanes(columns - (columns - 1) / lanes * lanes);
      t.b = b + first_k * b_step + column;
      const auto add_tiles = [&](std::int64_t first_row, std::int64_t rows, std::int64_t count) {
        t.count = count;
        t.a = from + first_row * a_row;
        t.a_next = rows * a_row;
        t.c = c + first_row * c_step + column;
        t.start = onto == Onto::sums ? t.c : onto == Onto::zeros ? zeros : nullptr;
        tile_function(layout, rows, columns)(t);
      };
      for (std::int64_t tile = 0; tile < tiles.count(); tile += tiles.alike(tile)) {
        add_tiles(tiles.first_row(tile), tiles.height(tile), tiles.alike(tile));
      }
    }
  }
}

/// Products of more operations than this go through gemm, which packs what lies far apart.
constexpr std::int64_t most_small = 128 * 64 * 64;

/// C[m,n] = op(A)·B.
template <class T>
void multiply_block(Transpose transpose_a, std::int64_t m, std::int64_t n, std::int64_t k, const T* a,
                    std::int64_t a_step, const T* b, std::int64_t b_step, Onto onto, T* c,
                    std::int64_t c_step) {
  if (m == 0 || n == 0) return;
  if constexpr (std::is_same_v<T, float>) {
    if (k > 0 && m * n * k <= most_small) {
      return multiply_small(transpose_a == Transpose::yes ? LayoutA::columns : LayoutA::rows, m, n, k, a,
                            a_step, b, b_step, onto, c, c_step);
    }
  }
  if (onto == Onto::zeros) {
    for (std::int64_t i = 0; i < m; ++i) std::fill_n(c + i * c_step, n, T{0});
  }
  gemm(transpose_a, Transpose::no, m, n, k, a, a_step, b, b_step, onto == Onto::nothing ? T{0} : T{1}, c,
       c_step);
}

template <class T>
void clear_rows(std::int64_t count, std::int64_t columns, T* c, std::int64_t c_step) {
  for (std::int64_t i = 0; i < count; ++i) {
    for_lanes<T>(columns, [&](std::int64_t j, auto part) { put(c + i * c_step + j, broadcast(T{0}), part); });
  }
}

/// Whether parts of a tile are left out. f64 is for checks and multiplies all.
template <class T>
constexpr bool skips = width<T> > 1;

/// tile [keys, lanes] = rows [keys, depth] · columns [depth, lanes]; of blocked keys perhaps left as it was.
template <class T>
void multiply_scores(const QueryBlock<T>& block, const Keys& keys, bool masked, const Rows<const T>& rows,
                     std::int64_t depth, const T* columns, T* tile) {
  const auto part_of = [&](const Keys& part, std::int64_t lane, std::int64_t count) {
    if (part.count() <= 0) return;
    const std::int64_t at = part.first - keys.first;
    multiply_block(Transpose::no, part.count(), count, depth, rows.at(at), rows.step, columns + lane,
                   block.lanes, Onto::nothing, tile + at * block.lanes + lane, block.lanes);
  };
  if (!skips<T> || !masked) return part_of(keys, 0, block.lanes);
  // Keys that every vector needs, then what single vectors need beside.
  Keys common{std::max(keys.first, block.common.first), std::min(keys.last, block.common.last)};
  if (common.count() <= 0) common = {keys.last, keys.last};
  part_of(common, 0, block.lanes);
  for (std::int64_t lane = 0; lane < block.lanes; lane += width<T>) {
    const Keys own = block.part(keys, lane);
    part_of({own.first, std::min(own.last, common.first)}, lane, width<T>);
    part_of({std::max(own.first, common.last), own.last}, lane, width<T>);
  }
}

/// out [queries, columns] = tileᵀ · rows [keys, columns].
template <class T>
void multiply_for_queries(const QueryBlock<T>& block, const Keys& keys, bool masked, const T* tile,
                          const Rows<const T>& rows, std::int64_t columns, Onto onto, const Rows<T>& out) {
  const auto part_of = [&](const Keys& part, std::int64_t lane, std::int64_t count) {
    const std::int64_t at = part.first - keys.first;
    multiply_block(Transpose::yes, count, columns, part.count(), tile + at * block.lanes + lane, block.lanes,
                   rows.at(at), rows.step, onto, out.at(lane), out.step);
  };
  if (!skips<T> || !masked) return part_of(keys, 0, block.count);
  for (std::int64_t lane = 0, end = 0; lane < block.count; lane = end) {
    const Keys own = block.part(keys, lane);
    const auto alike = [&](const Keys& other) { return other.first == own.first && other.last == own.last; };
    for (end = lane + width<T>; end < block.count && alike(block.part(keys, end));) end += width<T>;
    end = std::min(end, block.count);
    if (own.count() > 0) {
      part_of(own, lane, end - lane);
    } else if (onto != Onto::sums) {
      clear_rows(end - lane, columns, out.at(lane), out.step);
    }
  }
}

/// out [keys, columns] = tile · rows [queries, columns].
template <class T>
void multiply_for_keys(const QueryBlock<T>& block, const Keys& keys, bool masked, const T* tile,
                       const Rows<const T>& rows, std::int64_t columns, Onto onto, const Rows<T>& out) {
  const auto part_of = [&](std::int64_t first, std::int64_t last, std::int64_t from, std::int64_t to) {
    multiply_block(Transpose::no, last - first, columns, to - from, tile + first * block.lanes + from,
                   block.lanes, rows.at(from), rows.step, onto, out.at(first), out.step);
  };
  if (!skips<T> || !masked) return part_of(0, keys.count(), 0, block.count);
  // Queries from the first to the last vector that needs one of some keys.
  constexpr std::int64_t keys_at_once = 16;
  const auto needed = [&](std::int64_t first) {
    const std::int64_t from = keys.first + first, to = std::min(from + keys_at_once, keys.last);
    Keys queries{block.count, 0};
    for (std::int64_t lane = 0; lane < block.count; lane += width<T>) {
      const Keys& own = block.vectors[static_cast<std::size_t>(lane / width<T>)];
      if (own.first >= to || own.last <= from) continue;
      queries = {std::min(queries.first, lane), std::min(lane + width<T>, block.count)};
    }
    return queries;
  };
  for (std::int64_t first = 0, last = 0; first < keys.count(); first = last) {
    const Keys queries = needed(first);
    for (last = first + keys_at_once; last < keys.count(); last += keys_at_once) {
      const Keys next = needed(last);
      if (next.first != queries.first || next.last != queries.last) break;
    }
    last = std::min(last, keys.count());
    if (queries.count() > 0) {
      part_of(first, last, queries.first, queries.last);
    } else if (onto != Onto::sums) {
      clear_rows(last - first, columns, out.at(first), out.step);
    }
  }
}

}  // namespace headlab::kernels::detail
