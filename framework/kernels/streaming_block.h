// How the streaming kernels cut their work: blocks of queries against tiles of keys, which tiles a block may
// skip, and products in which some numbers are not finite. For streaming_*.cpp only.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <vector>

#include "framework/core/array.h"
#include "framework/core/parallel.h"
#include "framework/kernels/finite.h"
#include "framework/kernels/gemm.h"
#include "framework/kernels/lanes.h"
#include "framework/kernels/scratch.h"
#include "framework/kernels/streaming_attention.h"

namespace headlab::kernels::detail {

template <class T>
constexpr T blocked_score = -std::numeric_limits<T>::infinity();

template <class T>
constexpr DType dtype_of = std::is_same_v<T, float> ? DType::f32 : DType::f64;

/// Numbers per query of a block.
template <class T>
using PerQuery = std::array<T, attention_queries>;

/// Keys first … last − 1.
struct Keys {
  std::int64_t first, last;
  std::int64_t count() const { return last - first; }
};

/// Rows of one head, the first belonging to the first key or query that is meant.
template <class T>
struct Rows {
  T* data = nullptr;
  std::int64_t step = 0;
  T* at(std::int64_t i) const { return data + i * step; }
};

/// Those of a head of an example from row i on.
template <class T>
Rows<T> rows_of(const HeadRows<T>& all, std::int64_t b, std::int64_t h, std::int64_t i = 0) {
  return {all.at(b, h, i), all.row};
}

template <class T>
void copy_rows(const Rows<const T>& from, std::int64_t count, std::int64_t columns, const Rows<T>& to) {
  for (std::int64_t i = 0; i < count; ++i) {
    for_lanes<T>(columns,
                 [&](std::int64_t k, auto part) { put(to.at(i) + k, get(from.at(i) + k, part), part); });
  }
}

/// Whether copies of a head's rows pay that put them side by side: many queries read them, and whole model
/// widths from each other they fall into few sets of a cache, where no prefetcher follows them.
template <class T>
bool worth_copies(const AttentionProblem<T>& p) {
  return p.n_q >= 512 && p.n_k >= 512 && p.k.row > p.k.width;
}

/// A block of queries of one head.
template <class T>
struct QueryBlock {
  std::int64_t example = 0, head = 0;
  std::int64_t first = 0, count = 0;                       ///< queries first … first + count − 1
  std::int64_t lanes = 0;                                  ///< count rounded up to whole vectors
  alignas(64) PerQuery<std::int32_t> first_key, last_key;  ///< past count: nothing is allowed
  std::int64_t lowest = 0, highest = 0;                    ///< all allowed keys lie in [lowest, highest)
  std::int64_t last_first = 0, first_last = 0;             ///< every query may see [last_first, first_last)
  Keys common{0, 0};                                       ///< every vector of queries needs these
  /// The same as lowest and highest for each vector of queries.
  std::array<Keys, attention_queries / width<T>> vectors;

  QueryBlock(const AttentionProblem<T>& p, std::int64_t b, std::int64_t h, std::int64_t block)
      : example(b), head(h), first(block * attention_queries) {
    count = std::min(attention_queries, p.n_q - first);
    lanes = (count + width<T> - 1) / width<T> * width<T>;
    first_key.fill(0);
    last_key.fill(0);
    vectors.fill({p.n_k, 0});
    lowest = p.n_k;
    first_last = count < lanes ? 0 : p.n_k;
    for (std::int64_t i = 0; i < count; ++i) {
      std::int32_t from = 0, to = static_cast<std::int32_t>(p.n_k);
      if (p.mask.first) {
        from = p.mask.first[b * p.mask.range_example + first + i];
        to = p.mask.last[b * p.mask.range_example + first + i];
      }
      const auto at = static_cast<std::size_t>(i);
      first_key[at] = from;
      last_key[at] = to;
      last_first = std::max<std::int64_t>(last_first, from);
      first_last = std::min<std::int64_t>(first_last, to);
      if (from >= to) continue;
      lowest = std::min<std::int64_t>(lowest, from);
      highest = std::max<std::int64_t>(highest, to);
      Keys& own = vectors[static_cast<std::size_t>(i / width<T>)];
      own = {std::min<std::int64_t>(own.first, from), std::max<std::int64_t>(own.last, to)};
    }
    common = vectors[0];
    for (std::int64_t lane = width<T>; lane < lanes; lane += width<T>) {
      const Keys& own = vectors[static_cast<std::size_t>(lane / width<T>)];
      common = {std::max(common.first, own.first), std::min(common.last, own.last)};
    }
  }

  /// Those of some keys that the vector of queries from `lane` on may see.
  Keys part(const Keys& keys, std::int64_t lane) const {
    const Keys& own = vectors[static_cast<std::size_t>(lane / width<T>)];
    const std::int64_t from = std::clamp(own.first, keys.first, keys.last);
    return {from, std::clamp(own.last, from, keys.last)};
  }

  /// Whether a range keeps one of the queries from one of these keys.
  bool masks(const Keys& keys) const { return keys.first < last_first || keys.last > first_last; }

  /// Whether any query may see one of these keys.
  bool meets(std::int64_t from, std::int64_t to) const {
    bool any = false;
    for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
      any = any || (first_key[i] < to && last_key[i] > from && first_key[i] < last_key[i]);
    }
    return any;
  }
};

/// The blocks of queries of all heads, worked out once where all examples have the same mask.
template <class T>
class QueryBlocks {
 public:
  explicit QueryBlocks(const AttentionProblem<T>& p) : problem_(p) {
    if (p.mask.range_example != 0 || p.batch * p.heads == 0) return;
    for (std::int64_t index = 0; index < p.blocks(); ++index) blocks_.emplace_back(p, 0, 0, index);
  }
  QueryBlock<T> operator()(std::int64_t b, std::int64_t h, std::int64_t index) const {
    if (blocks_.empty()) return {problem_, b, h, index};
    QueryBlock<T> block = blocks_[static_cast<std::size_t>(index)];
    block.example = b;
    block.head = h;
    return block;
  }

 private:
  const AttentionProblem<T>& problem_;
  std::vector<QueryBlock<T>> blocks_;
};

/// What a tile [keys, lanes] holds, from `at` on, of keys that no query of a vector may see.
template <class T>
HEADLAB_INLINE void fill_around(const QueryBlock<T>& block, const Keys& keys, const Keys& part, T* at,
                                Lanes<T> value) {
  for (std::int64_t j = 0; j < part.first - keys.first; ++j) store(at + j * block.lanes, value);
  for (std::int64_t j = part.last - keys.first; j < keys.count(); ++j) store(at + j * block.lanes, value);
}

/// The keys of a tile, without those at both ends that no query of the block may see, which changes no bit;
/// none where the block needs nothing of it.
template <class T>
Keys keys_of_tile(const QueryBlock<T>& block, std::int64_t tile) {
  const Keys keys{std::max(tile * attention_keys, block.lowest),
                  std::min((tile + 1) * attention_keys, block.highest)};
  if (keys.count() <= 0) return {0, 0};
  // Those at either end belong to some query.
  const bool at_an_end = keys.first == block.lowest || keys.last == block.highest;
  return at_an_end || block.meets(keys.first, keys.last) ? keys : Keys{0, 0};
}

/// Which tiles of keys or values hold only finite numbers, [batch, kv_heads, tiles].
template <class T>
class FiniteTiles {
 public:
  FiniteTiles(const AttentionProblem<T>& p, const HeadRows<const T>& rows)
      : tiles_(p.tiles()), kv_heads_(p.kv_heads), finite_({p.batch, p.kv_heads, tiles_}, DType::u8) {
    const auto numbers = static_cast<double>(attention_keys * rows.width);
    const Cost cost{.flops = numbers, .bytes = sizeof(T) * numbers};
    std::uint8_t* finite = finite_.template data<std::uint8_t>();
    parallel_for(finite_.size(), grain_for(cost), cost, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        const std::int64_t first = i % tiles_ * attention_keys;
        const T* from = rows.at(i / tiles_ / kv_heads_, i / tiles_ % kv_heads_, first);
        const std::int64_t count = std::min(attention_keys, p.n_k - first);
        finite[i] = all_finite(from, count, rows.width, rows.row) ? 1 : 0;
      }
    });
  }
  bool operator()(std::int64_t b, std::int64_t kv, const Keys& keys) const {
    return finite_
               .template data<std::uint8_t>()[(b * kv_heads_ + kv) * tiles_ + keys.first / attention_keys] !=
           0;
  }

 private:
  std::int64_t tiles_, kv_heads_;
  Array finite_;
};

/// out [count, columns] += tileᵀ · rows of the tile's keys, where some of the rows are not finite: each
/// query multiplies its own copy, in which keys that it may not see are 0. The same sums in the same order.
template <class T>
void add_rows_one_by_one(const AttentionProblem<T>& p, const QueryBlock<T>& block, const Keys& keys,
                         const T* tile, const Rows<const T>& rows, std::int64_t columns, bool accumulate,
                         const Rows<T>& out) {
  const Scratch<T> copy(keys.count() * columns);
  for (std::int64_t i = 0; i < block.count; ++i) {
    for (std::int64_t j = keys.first; j < keys.last; ++j) {
      T* to = copy.data() + (j - keys.first) * columns;
      if (p.allows(block.example, block.head, block.first + i, j)) {
        std::copy_n(rows.at(j - keys.first), columns, to);
      } else {
        std::fill_n(to, columns, T{0});
      }
    }
    gemm(Transpose::yes, Transpose::no, 1, columns, keys.count(), tile + i, block.lanes, copy.data(), columns,
         accumulate ? T{1} : T{0}, out.at(i), out.step);
  }
}

/// out [keys, columns] += tile · rows of the block's queries, where some of the rows (of queries, or of
/// what comes back to them) are not finite: each key multiplies its own copy, in which queries that may not
/// see it are 0.
template <class T>
void add_queries_one_by_one(const AttentionProblem<T>& p, const QueryBlock<T>& block, const Keys& keys,
                            const T* tile, const Rows<const T>& rows, std::int64_t columns,
                            const Rows<T>& out) {
  const Scratch<T> copy(block.count * columns);
  for (std::int64_t j = keys.first; j < keys.last; ++j) {
    for (std::int64_t i = 0; i < block.count; ++i) {
      T* to = copy.data() + i * columns;
      if (p.allows(block.example, block.head, block.first + i, j)) {
        std::copy_n(rows.at(i), columns, to);
      } else {
        std::fill_n(to, columns, T{0});
      }
    }
    gemm(Transpose::no, Transpose::no, 1, columns, block.count, tile + (j - keys.first) * block.lanes,
         block.lanes, copy.data(), columns, T{1}, out.at(j - keys.first), out.step);
  }
}

}  // namespace headlab::kernels::detail
