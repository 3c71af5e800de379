// One tile of the streaming kernels: the scores of a block of queries with some keys. For
// streaming_attention_*.cpp only.
//
// A tile is stored key by key, queries side by side in the lanes: maxima, sums and exponentials run down the
// keys without a horizontal step, queries never mix, and each of the five products reads keys and values as
// they lie in memory; only the queries of a block are transposed, once.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>

#include "framework/core/array.h"
#include "framework/core/parallel.h"
#include "framework/kernels/finite.h"
#include "framework/kernels/gemm.h"
#include "framework/kernels/lanes.h"
#include "framework/kernels/streaming_attention.h"

namespace headlab::kernels::detail {

template <class T>
constexpr T blocked_score = -std::numeric_limits<T>::infinity();

template <class T>
constexpr DType dtype_of = std::is_same_v<T, float> ? DType::f32 : DType::f64;

/// Numbers per query of a block.
template <class T>
using PerQuery = std::array<T, attention_queries>;

/// columns [columns, lanes] = rows [count, columns] transposed; lanes past `count` hold finite nonsense.
template <class T>
void transpose_block(const T* rows, std::int64_t row, std::int64_t count, std::int64_t columns, T* to,
                     std::int64_t to_step) {
  if (count < to_step) std::fill_n(to, columns * to_step, T{0});
  if constexpr (std::is_same_v<T, float>) {
    for (std::int64_t i = 0; i < count; i += transpose_rows) {
      transpose(rows + i * row, row, std::min(transpose_rows, count - i), columns, to + i, to_step);
    }
  } else {
    for (std::int64_t c = 0; c < columns; ++c) {
      for (std::int64_t i = 0; i < count; ++i) to[c * to_step + i] = rows[i * row + c];
    }
  }
}

/// Biases by distance in the order in which a key meets its queries: [heads, step], entry i − j + n_k − 1.
template <class T>
struct OffsetBias {
  Array reversed;
  std::int64_t step = 0;
  std::int64_t zero = 0;  ///< n_k − 1

  OffsetBias() = default;
  explicit OffsetBias(const AttentionProblem<T>& p) {
    if (!p.offset_bias) return;
    const std::int64_t offsets = std::max<std::int64_t>(p.n_q + p.n_k - 1, 0);
    step = offsets + lanes;
    zero = p.n_k - 1;
    reversed = Array::zeros({p.heads, step}, dtype_of<T>);
    for (std::int64_t h = 0; h < p.heads; ++h) {
      std::reverse_copy(p.offset_bias + h * offsets, p.offset_bias + (h + 1) * offsets,
                        reversed.data<T>() + h * step);
    }
  }
};

/// Keys first … last − 1.
struct Keys {
  std::int64_t first, last;
  std::int64_t count() const { return last - first; }
};

/// A block of queries of one head.
template <class T>
struct QueryBlock {
  std::int64_t example = 0, head = 0;
  std::int64_t first = 0, count = 0;                       ///< queries first … first + count − 1
  std::int64_t lanes = 0;                                  ///< count rounded up to whole vectors
  alignas(64) PerQuery<std::int32_t> first_key, last_key;  ///< past count: nothing is allowed
  std::int64_t lowest = 0, highest = 0;                    ///< all allowed keys lie in [lowest, highest)
  std::int64_t last_first = 0, first_last = 0;             ///< every query may see [last_first, first_last)
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
  }

  /// Those of some keys that the vector of queries from `lane` on may see.
  Keys part(const Keys& keys, std::int64_t lane) const {
    const Keys& own = vectors[static_cast<std::size_t>(lane / width<T>)];
    const std::int64_t from = std::clamp(own.first, keys.first, keys.last);
    return {from, std::clamp(own.last, from, keys.last)};
  }

  /// Whether any query may see one of these keys.
  bool meets(std::int64_t from, std::int64_t to) const {
    bool any = false;
    for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
      any = any || (first_key[i] < to && last_key[i] > from && first_key[i] < last_key[i]);
    }
    return any;
  }
};

/// What a tile [keys, lanes] holds, from `at` on, of keys that no query of a vector may see.
template <class T>
HEADLAB_INLINE void fill_around(const QueryBlock<T>& block, const Keys& keys, const Keys& part, T* at,
                                Lanes<T> value) {
  for (std::int64_t j = 0; j < part.first - keys.first; ++j) store(at + j * block.lanes, value);
  for (std::int64_t j = part.last - keys.first; j < keys.count(); ++j) store(at + j * block.lanes, value);
}

/// f(keys) for every tile `first_tile`, `first_tile` + `tile_step`, … that some query of the block may see;
/// keys that none may see are cut off at both ends, which changes no bit.
template <class T, class F>
void for_each_tile(const QueryBlock<T>& block, std::int64_t first_tile, std::int64_t tile_step, F&& f) {
  if (block.lowest >= block.highest) return;
  std::int64_t tile = block.lowest / attention_keys;
  tile += ((first_tile - tile) % tile_step + tile_step) % tile_step;
  for (; tile * attention_keys < block.highest; tile += tile_step) {
    const Keys keys{std::max(tile * attention_keys, block.lowest),
                    std::min((tile + 1) * attention_keys, block.highest)};
    if (block.meets(keys.first, keys.last)) f(keys);
  }
}

/// Which tiles of keys or values hold only finite numbers, [batch, kv_heads, tiles].
template <class T>
class FiniteTiles {
 public:
  FiniteTiles(const AttentionProblem<T>& p, const HeadRows<const T>& rows)
      : tiles_((p.n_k + attention_keys - 1) / attention_keys),
        kv_heads_(p.kv_heads),
        finite_({p.batch, p.kv_heads, tiles_}, DType::u8) {
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

/// out [count, columns] += tileᵀ · rows over the tile's keys, where some of the rows are not finite: each
/// query multiplies its own copy, in which keys that it may not see are 0. The same sums in the same order.
template <class T>
void add_rows_one_by_one(const AttentionProblem<T>& p, const QueryBlock<T>& block, const Keys& keys,
                         const T* tile, const HeadRows<const T>& rows, bool accumulate, T* out,
                         std::int64_t out_row) {
  const std::int64_t columns = rows.width;
  Array copy({keys.count(), columns}, dtype_of<T>);
  for (std::int64_t i = 0; i < block.count; ++i) {
    for (std::int64_t j = keys.first; j < keys.last; ++j) {
      T* to = copy.data<T>() + (j - keys.first) * columns;
      if (p.allows(block.example, block.head, block.first + i, j)) {
        std::copy_n(rows.at(block.example, block.head / p.group(), j), columns, to);
      } else {
        std::fill_n(to, columns, T{0});
      }
    }
    gemm(Transpose::yes, Transpose::no, 1, columns, keys.count(), tile + i, block.lanes, copy.data<T>(),
         columns, accumulate ? T{1} : T{0}, out + i * out_row, out_row);
  }
}

/// out [keys, columns] += tile · rows over the block's queries, where some of the rows (of queries, or of
/// what comes back to them) are not finite: each key multiplies its own copy, in which queries that may not
/// see it are 0.
template <class T>
void add_queries_one_by_one(const AttentionProblem<T>& p, const QueryBlock<T>& block, const Keys& keys,
                            const T* tile, const HeadRows<const T>& rows, const HeadRows<T>& out) {
  const std::int64_t columns = rows.width;
  Array copy({block.count, columns}, dtype_of<T>);
  for (std::int64_t j = keys.first; j < keys.last; ++j) {
    for (std::int64_t i = 0; i < block.count; ++i) {
      T* to = copy.data<T>() + i * columns;
      if (p.allows(block.example, block.head, block.first + i, j)) {
        std::copy_n(rows.at(block.example, block.head, block.first + i), columns, to);
      } else {
        std::fill_n(to, columns, T{0});
      }
    }
    gemm(Transpose::no, Transpose::no, 1, columns, block.count, tile + (j - keys.first) * block.lanes,
         block.lanes, copy.data<T>(), columns, T{1}, out.at(block.example, block.head / p.group(), j),
         out.row);
  }
}

/// The scores of one tile.
template <class T>
class ScoreTile {
 public:
  explicit ScoreTile(const AttentionProblem<T>& p, const OffsetBias<T>& offset_bias)
      : problem_(p),
        offset_bias_(offset_bias),
        queries_({p.d_k, attention_queries}, dtype_of<T>),
        scores_({attention_keys, attention_queries}, dtype_of<T>) {
    if (p.softcap > 0) slopes_ = Array({attention_keys, attention_queries}, dtype_of<T>);
    if (p.mask.bias || p.mask.allow) addend_ = Array({attention_keys, attention_queries}, dtype_of<T>);
  }

  void take(const QueryBlock<T>& block) {
    block_ = &block;
    transpose_block(problem_.q.at(block.example, block.head, block.first), problem_.q.row, block.count,
                    problem_.d_k, queries_.template data<T>(), block.lanes);
  }

  /// Computes scale·k·q, softcap, biases, −∞ where blocked, and passes every vector of scores through
  /// `down(lane)`, an object made for each vector of queries: value(key, score) is what the tile [keys,
  /// lanes] keeps, keys ascending; outside() is what it holds of keys that the vector's queries may not see;
  /// done() is called at the end. Returns whether any may be blocked.
  template <class Down>
  bool fill(const Keys& keys, const Down& down) {
    const QueryBlock<T>& block = *block_;
    const AttentionProblem<T>& p = problem_;
    gemm(Transpose::no, Transpose::no, keys.count(), block.lanes, p.d_k,
         p.k.at(block.example, block.head / p.group(), keys.first), p.k.row, queries_.template data<T>(),
         block.lanes, T{0}, scores(), block.lanes);
    const bool masked = keys.first < block.last_first || keys.last > block.first_last;
    if (addend_) gather_addend(keys);
    if (addend_ || p.softcap > 0 || p.offset_bias || p.mask.valid) {
      finish<true, true>(keys, down);
      return true;
    }
    masked ? finish<true, false>(keys, down) : finish<false, false>(keys, down);
    return masked;
  }

  T* scores() { return scores_.template data<T>(); }
  /// d softcap·tanh(s/softcap) / ds
  const T* slopes() const { return slopes_.template data<T>(); }

 private:
  template <bool masked, bool special, class Down>
  void finish(const Keys& keys, const Down& down) {
    const QueryBlock<T>& block = *block_;
    const AttentionProblem<T>& p = problem_;
    const auto scale = broadcast(p.scale);
    const auto minus_infinity_ = broadcast(blocked_score<T>);
    const T* offset = nullptr;  // of key 0 and the block's first query
    if (special && p.offset_bias) {
      offset = offset_bias_.reversed.template data<T>() + block.head * offset_bias_.step + offset_bias_.zero +
               block.first;
    }
    const std::uint8_t* valid = special && p.mask.valid ? p.mask.valid + block.example * p.n_k : nullptr;
    for (std::int64_t lane = 0; lane < block.lanes; lane += width<T>) {
      const auto first = load_ints<T>(block.first_key.data() + lane);
      const auto last = load_ints<T>(block.last_key.data() + lane);
      const Keys part = masked ? block.part(keys, lane) : keys;
      auto pass = down(lane);
      if constexpr (masked) fill_around(block, keys, part, scores() + lane, pass.outside());
      for (std::int64_t j = part.first; j < part.last; ++j) {
        const std::int64_t at = (j - keys.first) * block.lanes + lane;
        auto s = load(scores() + at) * scale;
        if constexpr (special) {
          if (p.softcap > 0) {
            const auto t = tanh(s / broadcast(p.softcap));
            s = t * broadcast(p.softcap);
            store(slopes_.template data<T>() + at, fnma(t, t, broadcast(T{1})));
          }
          if (addend_) {
            const auto a = load(addend_.template data<T>() + at);
            s = select(a == minus_infinity_, a, s + a);
          }
          if (offset) s = s + load(offset + lane - j);
        }
        if constexpr (masked) {
          const auto key = broadcast_ints<T>(static_cast<std::int32_t>(j));
          s = select(~(key < first) & (key < last), s, minus_infinity_);
          if (special && valid && valid[j] == 0) s = minus_infinity_;
        }
        store(scores() + at, pass.value(j, s));
      }
      pass.done();
    }
  }

  // Biases and boolean masks lie query by query.
  void gather_addend(const Keys& keys) {
    const QueryBlock<T>& block = *block_;
    const AllowedKeys<T>& mask = problem_.mask;
    T* addend = addend_.template data<T>();
    if (block.count < block.lanes) std::fill_n(addend, keys.count() * block.lanes, T{0});
    for (std::int64_t i = 0; i < block.count; ++i) {
      const std::int64_t row = (block.first + i) * problem_.n_k;
      const T* bias = mask.bias;
      if (bias) bias += block.example * mask.bias_example + block.head * mask.bias_head + row;
      const std::uint8_t* allow = mask.allow;
      if (allow) allow += block.example * mask.allow_example + block.head * mask.allow_head + row;
      for (std::int64_t j = keys.first; j < keys.last; ++j) {
        const T value = bias ? bias[j] : T{0};
        addend[(j - keys.first) * block.lanes + i] = allow && allow[j] == 0 ? blocked_score<T> : value;
      }
    }
  }

  const AttentionProblem<T>& problem_;
  const OffsetBias<T>& offset_bias_;
  const QueryBlock<T>* block_ = nullptr;
  Array queries_, scores_, slopes_, addend_;
};

/// Factors of dropout of a tile, [keys, lanes]: 0 or 1/(1 − p).
template <class T>
class DropoutTile {
 public:
  explicit DropoutTile(const AttentionProblem<T>& p) : problem_(p) {
    if (p.dropout > 0) factors_ = Array({attention_keys, attention_queries}, dtype_of<T>);
  }
  explicit operator bool() const { return static_cast<bool>(factors_); }
  const T* factors() const { return factors_.template data<T>(); }

  // An element's number is its place among the weights [batch, heads, n_q, n_k].
  void make(const QueryBlock<T>& block, const Keys& keys) {
    const AttentionProblem<T>& p = problem_;
    std::array<float, attention_keys> row;
    for (std::int64_t i = 0; i < block.count; ++i) {
      const std::int64_t element =
          ((block.example * p.heads + block.head) * p.n_q + block.first + i) * p.n_k + keys.first;
      DropoutKey key = p.dropout_key;
      key.first_element += static_cast<std::uint64_t>(element);
      dropout_factors(key, p.dropout, row.data(), keys.count());
      for (std::int64_t j = 0; j < keys.count(); ++j) {
        const bool kept = row[static_cast<std::size_t>(j)] != 0;
        factors_.template data<T>()[j * block.lanes + i] = kept ? factor() : T{0};
      }
    }
    for (std::int64_t i = block.count; i < block.lanes; ++i) {
      for (std::int64_t j = 0; j < keys.count(); ++j) factors_.template data<T>()[j * block.lanes + i] = T{0};
    }
  }

 private:
  T factor() const { return problem_.dropout >= 1 ? T{0} : static_cast<T>(1 / (1 - problem_.dropout)); }
  const AttentionProblem<T>& problem_;
  Array factors_;
};

}  // namespace headlab::kernels::detail
