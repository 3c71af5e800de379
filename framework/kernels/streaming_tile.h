// One tile of the streaming kernels: the scores of a block of queries with some keys. For streaming_*.cpp
// only.
//
// A tile is stored key by key, queries side by side in the lanes: maxima, sums and exponentials run down the
// keys without a horizontal step, queries never mix, and each of the five products reads keys and values as
// they lie in memory; only the queries of a block are transposed, once.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include "framework/kernels/streaming_product.h"

namespace headlab::kernels::detail {

/// Vectors of a whole block of queries.
template <class T>
constexpr int vectors = static_cast<int>(attention_queries / width<T>);

/// make(lane) for each of them.
template <class T, class Make>
HEADLAB_INLINE auto each_vector(const Make& make) {
  return [&]<int... i>(std::integer_sequence<int, i...>) __attribute__((always_inline)) {
    return std::array{make(i * width<T>)...};
  }
  (std::make_integer_sequence<int, vectors<T>>{});
}

/// to [columns, lanes] = rows [count, columns] transposed; lanes past `count` hold finite nonsense.
template <class T>
void transpose_block(const Rows<const T>& rows, std::int64_t count, std::int64_t columns, T* to,
                     std::int64_t to_step) {
  if (count < to_step) std::fill_n(to, columns * to_step, T{0});
  if constexpr (std::is_same_v<T, float>) {
    for (std::int64_t i = 0; i < count; i += transpose_rows) {
      transpose(rows.at(i), rows.step, std::min(transpose_rows, count - i), columns, to + i, to_step);
    }
  } else {
    for (std::int64_t c = 0; c < columns; ++c) {
      for (std::int64_t i = 0; i < count; ++i) to[c * to_step + i] = rows.at(i)[c];
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
    const std::int64_t offsets = p.offsets();
    step = offsets + lanes;
    zero = p.n_k - 1;
    reversed = Array::zeros({p.heads, step}, dtype_of<T>);
    for (std::int64_t h = 0; h < p.heads; ++h) {
      std::reverse_copy(p.offset_bias + h * offsets, p.offset_bias + (h + 1) * offsets,
                        reversed.data<T>() + h * step);
    }
  }
};

/// The scores of one tile.
template <class T>
class ScoreTile {
 public:
  explicit ScoreTile(const AttentionProblem<T>& p, const OffsetBias<T>& offset_bias)
      : problem_(p), offset_bias_(offset_bias), scores_(attention_keys * attention_queries) {
    if (p.softcap > 0) slopes_ = Scratch<T>(attention_keys * attention_queries);
    if (p.mask.bias || p.mask.allow) addend_ = Scratch<T>(attention_keys * attention_queries);
  }

  /// Computes scale·k·q, softcap, biases, −∞ where blocked, and passes every vector of scores through
  /// `down(lane)`, an object made for each vector of queries: value(key, score) is what the tile [keys,
  /// lanes] keeps, keys ascending; outside() is what it holds of keys that the vector's queries may not see;
  /// done() is called at the end. Returns whether any may be blocked.
  /// queries: the block's, [d_k, lanes]; rows: those of the keys.
  template <class Down>
  bool fill(const QueryBlock<T>& block, const Keys& keys, const T* queries, const Rows<const T>& rows,
            const Down& down) {
    const AttentionProblem<T>& p = problem_;
    const bool masked = block.masks(keys);
    multiply_scores(block, keys, masked, rows, p.d_k, queries, scores());
    if (addend_) gather_addend(block, keys);
    if (addend_ || p.softcap > 0 || p.offset_bias || p.mask.valid) {
      finish<true, true>(block, keys, down);
      return true;
    }
    masked ? finish<true, false>(block, keys, down) : finish<false, false>(block, keys, down);
    return masked;
  }

  T* scores() { return scores_.data(); }
  /// d softcap·tanh(s/softcap) / ds
  const T* slopes() const { return slopes_.data(); }

 private:
  template <bool masked, bool special, class Down>
  void finish(const QueryBlock<T>& block, const Keys& keys, const Down& down) {
    const AttentionProblem<T>& p = problem_;
    const auto scale = broadcast(p.scale);
    const auto minus_infinity_ = broadcast(blocked_score<T>);
    if constexpr (!masked && !special && skips<T>) {
      if (block.lanes == attention_queries) {  // chains side by side, along the rows of the tile
        auto passes = each_vector<T>(down);
        T* at = scores();
        for (std::int64_t j = keys.first; j < keys.last; ++j) {
          unrolled<vectors<T>>([&](auto i) __attribute__((always_inline)) {
            store(at, passes[i].value(j, load(at) * scale));
            at += width<T>;
          });
        }
        for (auto& pass : passes) pass.done();
        return;
      }
    }
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
            store(slopes_.data() + at, fnma(t, t, broadcast(T{1})));
          }
          if (addend_) {
            const auto a = load(addend_.data() + at);
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
  void gather_addend(const QueryBlock<T>& block, const Keys& keys) {
    const AllowedKeys<T>& mask = problem_.mask;
    T* addend = addend_.data();
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
  Scratch<T> scores_, slopes_, addend_;
};

/// Factors of dropout of a tile, [keys, lanes]: 0 or 1/(1 − p).
template <class T>
class DropoutTile {
 public:
  explicit DropoutTile(const AttentionProblem<T>& p) : problem_(p) {
    if (p.dropout > 0) factors_ = Scratch<T>(attention_keys * attention_queries);
  }
  explicit operator bool() const { return static_cast<bool>(factors_); }
  /// x ∘ factors from element `at` of the tile on; exactly 0 for what is dropped, whatever it holds.
  HEADLAB_INLINE Lanes<T> times(std::int64_t at, Lanes<T> x) const {
    const auto none = broadcast(T{0});
    const auto f = load(factors_.data() + at);
    return select(f == none, none, x * f);
  }
  /// to = tile ∘ factors; may be the same.
  void apply(const QueryBlock<T>& block, const Keys& keys, const T* tile, T* to) const {
    for (std::int64_t at = 0; at < keys.count() * block.lanes; at += width<T>) {
      store(to + at, times(at, load(tile + at)));
    }
  }

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
        factors_.data()[j * block.lanes + i] = kept ? factor() : T{0};
      }
    }
    for (std::int64_t i = block.count; i < block.lanes; ++i) {
      for (std::int64_t j = 0; j < keys.count(); ++j) factors_.data()[j * block.lanes + i] = T{0};
    }
  }

 private:
  T factor() const { return problem_.dropout >= 1 ? T{0} : static_cast<T>(1 / (1 - problem_.dropout)); }
  const AttentionProblem<T>& problem_;
  Scratch<T> factors_;
};

}  // namespace headlab::kernels::detail
