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

/// Everything that a thread needs for blocks of queries, one after another.
template <class T>
class Forward {
 public:
  Forward(const AttentionProblem<T>& p, const QueryBlocks<T>& blocks, const OffsetBias<T>& offset_bias,
          const FiniteTiles<T>* finite, const HeadRows<T>& out, T* log_sum_exp,
          const TelemetryRequest<T>* telemetry)
      : p_(p),
        blocks_(blocks),
        finite_(finite),
        out_(out),
        log_sum_exp_(log_sum_exp),
        tile_(p, offset_bias),
        dropping_(p),
        sums_(attention_queries * p.d_v) {
    if (telemetry) telemetry_ = std::make_unique<TelemetryBlock<T>>(p, *telemetry);
  }

  void run(std::int64_t b, std::int64_t h, std::int64_t index) {
    const QueryBlock<T> block = blocks_(b, h, index);
    tile_.take(block);
    maximum_.fill(blocked_score<T>);
    total_.fill(T{0});
    if (telemetry_) telemetry_->start(block);
    started_ = false;
    for_each_tile(block, 0, 1, [&](const Keys& keys) { add(block, keys); });
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
    bool masked = false;
    if (telemetry_) {
      masked = tile_.fill(keys, [&](std::int64_t lane) {
        return telemetry_->maximum_pass(lane, load(maximum_.data() + lane), next_.data());
      });
      telemetry_->watch(keys, tile_.scores());
      weigh<true>(block, keys, masked);
    } else {
      masked = tile_.fill(keys, [&](std::int64_t lane) {
        return MaximumPass{*this, lane, load(maximum_.data() + lane)};
      });
      weigh<false>(block, keys, masked);
    }
    if (dropping_) {
      dropping_.make(block, keys);
      dropping_.apply(block, keys, tile_.scores(), tile_.scores());
    }
    const std::int64_t kv = block.head / p_.group();
    if (finite_ && !(*finite_)(block.example, kv, keys)) {
      add_rows_one_by_one(p_, block, keys, tile_.scores(), p_.v, started_, sums(), p_.d_v);
    } else {
      multiply_for_queries(block, keys, block.masks(keys), tile_.scores(),
                           p_.v.at(block.example, kv, keys.first), p_.v.row, p_.d_v,
                           started_ ? Onto::sums : Onto::nothing, sums(), p_.d_v);
    }
    started_ = true;
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
      T* row = sums() + i * p_.d_v;
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
      const T* from = sums() + i * p_.d_v;
      T* to = out_.at(block.example, block.head, block.first + i);
      if (!started_ || f == 0) {
        clear_rows(1, p_.d_v, to, 0);
      } else {
        for_lanes<T>(p_.d_v, [&](std::int64_t k, auto part) {
          put(to + k, get(from + k, part) * broadcast(f), part);
        });
      }
    }
    std::copy_n(next_.data(), block.count,
                log_sum_exp_ + (block.example * p_.heads + block.head) * p_.n_q + block.first);
    if (telemetry_) telemetry_->report();
  }

  T* sums() { return sums_.data(); }

  const AttentionProblem<T>& p_;
  const QueryBlocks<T>& blocks_;
  const FiniteTiles<T>* finite_;
  const HeadRows<T>& out_;
  T* log_sum_exp_;
  ScoreTile<T> tile_;
  DropoutTile<T> dropping_;
  std::unique_ptr<TelemetryBlock<T>> telemetry_;
  Scratch<T> sums_;  // Σ e^(s − m) v, [queries, d_v]
  bool started_ = false;
  alignas(64) PerQuery<T> maximum_, next_, total_, scale_;
};

}  // namespace

template <class T>
void streaming_attention(const AttentionProblem<T>& p, const HeadRows<T>& out, T* log_sum_exp,
                         const TelemetryRequest<T>* telemetry) {
  profile::moved<T>(1, p.numbers());  // the tiles' products count their operations
  const OffsetBias<T> offset_bias(p);
  const QueryBlocks<T> query_blocks(p);
  std::unique_ptr<FiniteTiles<T>> finite;
  if (p.mask.may_block()) finite = std::make_unique<FiniteTiles<T>>(p, p.v);
  const auto scores = static_cast<double>(std::min(attention_queries, p.n_q) * p.n_k);
  const Cost cost{.flops = scores * (2 * static_cast<double>(p.d_k + p.d_v) + 24), .bytes = 0};
  const std::int64_t blocks = p.blocks();
  parallel_for(p.batch * p.heads * blocks, grain_for(cost), cost, [&](std::int64_t begin, std::int64_t end) {
    Forward<T> forward(p, query_blocks, offset_bias, finite.get(), out, log_sum_exp, telemetry);
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
