#include "framework/kernels/streaming_attention.h"

#include <memory>

#include "framework/core/profile.h"
#include "framework/kernels/streaming_telemetry.h"
#include "framework/kernels/streaming_tile.h"

namespace headlab::kernels {

using namespace detail;

template <class T>
bool AttentionProblem<T>::allows(std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j) const {
  if (mask.first) {
    const std::int64_t at = b * mask.range_example + i;
    if (j < mask.first[at] || j >= mask.last[at]) return false;
  }
  if (mask.valid && mask.valid[b * n_k + j] == 0) return false;
  const std::int64_t at = i * n_k + j;
  if (mask.allow && mask.allow[b * mask.allow_example + h * mask.allow_head + at] == 0) return false;
  return !mask.bias || mask.bias[b * mask.bias_example + h * mask.bias_head + at] != blocked_score<T>;
}

namespace {

/// Keys or values copied for all threads, the rows of a head side by side: [batch, kv_heads, n_k, width].
template <class T>
Array side_by_side(const AttentionProblem<T>& p, const HeadRows<const T>& rows) {
  Array copies({p.batch, p.kv_heads, p.n_k, rows.width}, dtype_of<T>);
  const Cost cost{.bytes = 2.0 * static_cast<double>(rows.width) * sizeof(T)};
  parallel_for(p.batch * p.kv_heads * p.n_k, grain_for(cost), cost,
               [&](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t i = begin; i < end; ++i) {
                   const std::int64_t head = i / p.n_k;
                   copy_rows<T>(rows_of(rows, head / p.kv_heads, head % p.kv_heads, i % p.n_k), 1, rows.width,
                                {copies.data<T>() + i * rows.width, 0});
                 }
               });
  return copies;
}

/// What the threads share.
template <class T>
struct Shared {
  const AttentionProblem<T>& p;
  const OffsetBias<T> offset_bias;
  const QueryBlocks<T> blocks;
  std::unique_ptr<FiniteTiles<T>> finite_values;
  Array keys, values;  // copies, where they pay
  const HeadRows<T>& out;
  T* log_sum_exp;
  const TelemetryRequest<T>* telemetry;
};

/// Everything that a thread needs for blocks of queries, one after another.
template <class T>
class Forward {
 public:
  explicit Forward(const Shared<T>& shared)
      : own_(shared),
        p_(shared.p),
        tile_(p_, shared.offset_bias),
        dropping_(p_),
        queries_(p_.d_k * attention_queries),
        sums_(attention_queries * p_.d_v) {
    if (shared.telemetry) telemetry_ = std::make_unique<TelemetryBlock<T>>(p_, *shared.telemetry);
  }

  void run(std::int64_t b, std::int64_t h, std::int64_t index) {
    const QueryBlock<T> block = own_.blocks(b, h, index);
    transpose_block<T>(rows_of(p_.q, b, h, block.first), block.count, p_.d_k, queries_.data(), block.lanes);
    maximum_.fill(blocked_score<T>);
    total_.fill(T{0});
    if (telemetry_) telemetry_->start(block);
    started_ = false;
    for (std::int64_t tile = 0; tile * attention_keys < block.highest; ++tile) {
      const Keys keys = keys_of_tile(block, tile);
      if (keys.count() > 0) add(block, keys);
    }
    finish(block);
  }

 private:
  // Running maximum down the keys of one vector of queries.
  struct MaximumPass {
    Forward& own;
    std::int64_t lane;
    Lanes<T> maximum;
    HEADLAB_INLINE Lanes<T> value(std::int64_t, Lanes<T> s) {
      maximum = max(maximum, s);
      return s;
    }
    HEADLAB_INLINE Lanes<T> outside() const { return broadcast(T{0}); }
    HEADLAB_INLINE void done() { store(own.next_.data() + lane, maximum); }
  };

  void add(const QueryBlock<T>& block, const Keys& keys) {
    const std::int64_t b = block.example, kv = block.head / p_.group();
    const Rows<const T> key_rows = rows_from(keys.first, p_.k, own_.keys, b, kv);
    const Rows<const T> value_rows = rows_from(keys.first, p_.v, own_.values, b, kv);
    bool masked = false;
    if (telemetry_) {
      masked = tile_.fill(block, keys, queries_.data(), key_rows, [&](std::int64_t lane) {
        return telemetry_->maximum_pass(lane, load(maximum_.data() + lane), next_.data());
      });
      telemetry_->watch(keys, tile_.scores());
      weigh<true>(block, keys, masked);
    } else {
      masked = tile_.fill(block, keys, queries_.data(), key_rows, [&](std::int64_t lane) {
        return MaximumPass{*this, lane, load(maximum_.data() + lane)};
      });
      weigh<false>(block, keys, masked);
    }
    if (dropping_) {
      dropping_.make(block, keys);
      dropping_.apply(block, keys, tile_.scores(), tile_.scores());
    }
    const Rows<T> sums{sums_.data(), p_.d_v};
    if (own_.finite_values && !(*own_.finite_values)(b, kv, keys)) {
      add_rows_one_by_one(p_, block, keys, tile_.scores(), value_rows, p_.d_v, started_, sums);
    } else {
      multiply_for_queries(block, keys, block.masks(keys), tile_.scores(), value_rows, p_.d_v,
                           started_ ? Onto::sums : Onto::nothing, sums);
    }
    started_ = true;
  }

  // Rows from key j on: of the array, or of its copy.
  Rows<const T> rows_from(std::int64_t j, const HeadRows<const T>& rows, const Array& copy, std::int64_t b,
                          std::int64_t kv) const {
    if (!copy) return rows_of(rows, b, kv, j);
    return {copy.data<T>() + ((b * p_.kv_heads + kv) * p_.n_k + j) * rows.width, rows.width};
  }

  // Scores → e^(s − m) with the new maximum m; what was summed under the old one is scaled by c = e^(old −
  // m).
  template <bool telemetry>
  void weigh(const QueryBlock<T>& block, const Keys& keys, bool masked) {
    const auto blocked = broadcast(blocked_score<T>);
    bool rescale = false;
    for (std::int64_t lane = 0; lane < block.lanes; lane += width<T>) {
      const auto before = load(maximum_.data() + lane);
      const auto now = load(next_.data() + lane);
      const auto shift = select(now == blocked, broadcast(T{0}), now);
      const auto c = exp(before - shift);
      auto sum = broadcast(T{0});
      if constexpr (telemetry) {
        sum = telemetry_->weigh(lane, keys, masked, tile_.scores(), before, shift, c,
                                load(total_.data() + lane));
      } else if (masked) {
        const Keys part = block.part(keys, lane);
        for (std::int64_t j = part.first - keys.first; j < part.last - keys.first; ++j) {
          T* at = tile_.scores() + j * block.lanes + lane;
          const auto s = load(at);
          const auto e = select(s == blocked, broadcast(T{0}), exp(s - shift));
          store(at, e);
          sum = sum + e;
        }
      } else {
        for (std::int64_t j = 0; j < keys.count(); ++j) {
          T* at = tile_.scores() + j * block.lanes + lane;
          const auto e = exp(load(at) - shift);
          store(at, e);
          sum = sum + e;
        }
      }
      store(total_.data() + lane, fma(load(total_.data() + lane), c, sum));
      store(maximum_.data() + lane, now);
      store(scale_.data() + lane, c);
      rescale = rescale || any(c != broadcast(T{1}));
    }
    if (rescale && started_) scale_sums(block);
  }

  // Rows of sums times scale_.
  void scale_sums(const QueryBlock<T>& block) {
    for (std::int64_t i = 0; i < block.count; ++i) {
      const T c = scale_[static_cast<std::size_t>(i)];
      if (c == 1) continue;
      T* row = sums_.data() + i * p_.d_v;
      for_lanes<T>(p_.d_v,
                   [&](std::int64_t k, auto part) { put(row + k, get(row + k, part) * broadcast(c), part); });
    }
  }

  void finish(const QueryBlock<T>& block) {
    const auto blocked = broadcast(blocked_score<T>);
    const auto none = broadcast(T{0});
    for (std::int64_t lane = 0; lane < block.lanes; lane += width<T>) {
      auto m = load(maximum_.data() + lane);
      auto z = load(total_.data() + lane);
      const auto empty = m == blocked;
      auto c = broadcast(T{1});
      if (p_.sink) {
        const auto sink = broadcast(p_.sink[block.head]);
        const auto now = max(m, sink);
        c = exp(m - now);
        z = fma(z, c, exp(sink - now));
        m = now;
      }
      const auto factor = select(empty, none, c / z);
      store(scale_.data() + lane, factor);
      const auto lse = select(empty, blocked, m + log(z));
      store(next_.data() + lane, lse);
      if (telemetry_)
        telemetry_->finish(lane, load(maximum_.data() + lane), load(total_.data() + lane), m, z, c, empty);
    }
    for (std::int64_t i = 0; i < block.count; ++i) {
      const T f = scale_[static_cast<std::size_t>(i)];
      const T* from = sums_.data() + i * p_.d_v;
      T* to = own_.out.at(block.example, block.head, block.first + i);
      if (!started_ || f == 0) {
        clear_rows(1, p_.d_v, to, 0);
      } else {
        for_lanes<T>(p_.d_v, [&](std::int64_t k, auto part) {
          put(to + k, get(from + k, part) * broadcast(f), part);
        });
      }
    }
    std::copy_n(next_.data(), block.count,
                own_.log_sum_exp + (block.example * p_.heads + block.head) * p_.n_q + block.first);
    if (telemetry_) telemetry_->report();
  }

  const Shared<T>& own_;
  const AttentionProblem<T>& p_;
  ScoreTile<T> tile_;
  DropoutTile<T> dropping_;
  std::unique_ptr<TelemetryBlock<T>> telemetry_;
  Scratch<T> queries_;  // [d_k, lanes]
  Scratch<T> sums_;     // Σ e^(s − m) v, [queries, d_v]
  bool started_ = false;
  alignas(64) PerQuery<T> maximum_, next_, total_, scale_;
};

}  // namespace

template <class T>
void streaming_attention(const AttentionProblem<T>& p, const HeadRows<T>& out, T* log_sum_exp,
                         const TelemetryRequest<T>* telemetry) {
  profile::moved<T>(1, p.numbers());  // the tiles' products count their operations
  Shared<T> shared{p, OffsetBias<T>(p), QueryBlocks<T>(p), nullptr, {}, {}, out, log_sum_exp, telemetry};
  if (p.mask.may_block()) shared.finite_values = std::make_unique<FiniteTiles<T>>(p, p.v);
  const std::int64_t blocks = p.blocks();
  const auto scores = static_cast<double>(std::min(attention_queries, p.n_q) * p.n_k);
  const Cost cost{.flops = scores * (2 * static_cast<double>(p.d_k + p.d_v) + 24), .bytes = 0};
  if (worth_copies(p)) {
    shared.keys = side_by_side(p, p.k);
    shared.values = side_by_side(p, p.v);
  }
  parallel_for(p.batch * p.heads * blocks, grain_for(cost), cost, [&](std::int64_t begin, std::int64_t end) {
    Forward<T> forward(shared);
    for (std::int64_t piece = begin; piece < end; ++piece) {
      forward.run(piece / blocks / p.heads, piece / blocks % p.heads, piece % blocks);
    }
  });
}

template struct AttentionProblem<float>;
template struct AttentionProblem<double>;
template void streaming_attention(const AttentionProblem<float>&, const HeadRows<float>&, float*,
                                  const TelemetryRequest<float>*);
template void streaming_attention(const AttentionProblem<double>&, const HeadRows<double>&, double*,
                                  const TelemetryRequest<double>*);

}  // namespace headlab::kernels
