#include <memory>

#include "framework/core/profile.h"
#include "framework/kernels/streaming_attention.h"
#include "framework/kernels/streaming_tile.h"

namespace headlab::kernels {

using namespace detail;

namespace {

// With F the factors of dropout, P = softmax(S) over keys and sink, z = (P ∘ F) V:
//   dV = (P ∘ F)ᵀ dz,  dP = (dz Vᵀ) ∘ F,  dS = P ∘ (dP − D),  D = rowsum(P ∘ dP) = rowsum(dz ∘ z),
//   d offset bias = sums of dS over pairs of one distance,  d sink = −Σ e^(sink − lse) D,
//   dT = scale · softcap' · dS,  dQ = dT K,  dK = dTᵀ Q,
// where P = e^(S − lse) is computed again tile by tile.
template <class T>
struct Shared {
  const AttentionProblem<T>& p;
  const OffsetBias<T> offset_bias;
  const QueryBlocks<T> blocks;
  std::unique_ptr<FiniteTiles<T>> finite_keys;
  const HeadRows<const T>& out;
  const T* log_sum_exp;
  const HeadRows<const T>& dout;
  const AttentionGradients<T>& gradients;
  std::int64_t key_groups = 1;
  T* dq = nullptr;       // [key_groups, batch, n_q, heads·d_k] when there are several
  T* doffset = nullptr;  // [key_groups, batch, heads, step], reversed as OffsetBias
  T* dsink = nullptr;    // [batch, heads]

  HeadRows<T> dq_of(std::int64_t group) const {
    if (key_groups == 1) return gradients.q;
    const std::int64_t row = p.heads * p.d_k;
    return {dq + group * p.batch * p.n_q * row, p.n_q * row, row, p.d_k};
  }
};

template <class T>
class Backward {
 public:
  explicit Backward(const Shared<T>& shared)
      : own_(shared),
        p_(shared.p),
        tile_(shared.p, shared.offset_bias),
        dropping_(shared.p),
        douts_(p_.d_v * attention_queries),
        weights_gradient_(attention_keys * attention_queries) {
    if (dropping_) dropped_ = Scratch<T>(attention_keys * attention_queries);
  }

  /// Tiles group, group + key_groups, … of one key/value head.
  void run(std::int64_t b, std::int64_t kv, std::int64_t group) {
    group_ = group;
    first_ = true;
    if (p_.blocks() == 0 || p_.group() == 0) clear_keys(b, kv, 0, p_.n_k);
    for (std::int64_t h = kv * p_.group(); h < (kv + 1) * p_.group(); ++h) {
      T sink = 0;
      for (std::int64_t index = 0; index < p_.blocks(); ++index) {
        const QueryBlock<T> block = own_.blocks(b, h, index);
        started_ = false;
        ready_ = false;
        std::int64_t cleared = 0;  // keys before it have got a gradient, be it 0
        for_each_tile(block, group, own_.key_groups, [&](const Keys& keys) {
          if (first_) clear_keys(b, kv, cleared, keys.first);
          start(block);
          add(block, keys);
          cleared = keys.last;
        });
        if (first_) clear_keys(b, kv, cleared, p_.n_k);
        first_ = false;
        if (!started_) clear(block);
        if (own_.dsink && group == 0) {
          start(block);
          sink += sink_gradient(block);
        }
      }
      if (own_.dsink && group == 0) own_.dsink[b * p_.heads + h] = sink;
    }
  }

 private:
  // Gradients of those of the keys from … to − 1 that lie in the group's tiles.
  void clear_keys(std::int64_t b, std::int64_t kv, std::int64_t from, std::int64_t to) {
    const AttentionGradients<T>& g = own_.gradients;
    for (std::int64_t tile = from / attention_keys; tile * attention_keys < to; ++tile) {
      if (tile % own_.key_groups != group_) continue;
      const std::int64_t first = std::max(from, tile * attention_keys);
      const std::int64_t count = std::min(to, (tile + 1) * attention_keys) - first;
      clear_rows(count, p_.d_k, g.k.at(b, kv, first), g.k.row);
      clear_rows(count, p_.d_v, g.v.at(b, kv, first), g.v.row);
    }
  }

  // e^(s − lse), kept down the keys.
  struct WeightPass {
    Lanes<T> lse;
    HEADLAB_INLINE Lanes<T> value(std::int64_t, Lanes<T> s) {
      return select(s == broadcast(blocked_score<T>), broadcast(T{0}), exp(s - lse));
    }
    HEADLAB_INLINE Lanes<T> outside() const { return broadcast(T{0}); }
    HEADLAB_INLINE void done() {}
  };

  // Once a block, and only where there is a tile for it: under a causal mask half of the groups have none.
  void start(const QueryBlock<T>& block) {
    if (ready_) return;
    ready_ = true;
    tile_.take(block);
    const std::int64_t row = (block.example * p_.heads + block.head) * p_.n_q + block.first;
    transpose_block(own_.dout.at(block.example, block.head, block.first), own_.dout.row, block.count, p_.d_v,
                    douts_.data(), block.lanes);
    lse_.fill(T{0});
    mean_.fill(T{0});
    for (std::int64_t i = 0; i < block.count; ++i) {
      const T* z = own_.out.at(block.example, block.head, block.first + i);
      const T* dz = own_.dout.at(block.example, block.head, block.first + i);
      auto sum = broadcast(T{0});
      for_lanes<T>(p_.d_v,
                   [&](std::int64_t k, auto part) { sum = fma(get(z + k, part), get(dz + k, part), sum); });
      const auto at = static_cast<std::size_t>(i);
      const T lse = own_.log_sum_exp[row + i];
      lse_[at] = lse;
      mean_[at] = lse == blocked_score<T> ? T{0} : horizontal_sum(sum);
    }
    // Without a mask every query sees every key, and what is not finite belongs into every sum.
    finite_queries_ = !own_.finite_keys || all_finite(tile_.queries(), 1, p_.d_k * block.lanes, 0);
    finite_douts_ = !own_.finite_keys || all_finite(douts_.data(), 1, p_.d_v * block.lanes, 0);
  }

  T sink_gradient(const QueryBlock<T>& block) const {
    T sum = 0;
    for (std::size_t i = 0; i < static_cast<std::size_t>(block.count); ++i) {
      if (lse_[i] == blocked_score<T>) continue;
      sum -= exp_of(p_.sink[block.head] - lse_[i]) * mean_[i];
    }
    return sum;
  }

  void add(const QueryBlock<T>& block, const Keys& keys) {
    const std::int64_t b = block.example, kv = block.head / p_.group();
    const bool masked =
        tile_.fill(keys, [&](std::int64_t lane) { return WeightPass{load(lse_.data() + lane)}; });
    const T* used = tile_.scores();
    if (dropping_) used = drop(block, keys);
    const HeadRows<const T>& dout = own_.dout;
    const AttentionGradients<T>& g = own_.gradients;
    add_queries(block, keys, used, dout, finite_douts_, g.v);
    multiply_scores(block, keys, block.masks(keys), p_.v.at(b, kv, keys.first), p_.v.row, p_.d_v,
                    douts_.data(), dscores());
    differentiate(block, keys, masked);
    add_queries(block, keys, dscores(), p_.q, finite_queries_, g.k);
    const HeadRows<T> dq = own_.dq_of(group_);
    T* to = dq.at(b, block.head, block.first);
    if (own_.finite_keys && !(*own_.finite_keys)(b, kv, keys)) {
      add_rows_one_by_one(p_, block, keys, dscores(), p_.k, started_, to, dq.row);
    } else {
      multiply_for_queries(block, keys, block.masks(keys), dscores(), p_.k.at(b, kv, keys.first), p_.k.row,
                           p_.d_k, started_ ? Onto::sums : Onto::nothing, to, dq.row);
    }
    started_ = true;
  }

  // out [keys] += tile · rows
  void add_queries(const QueryBlock<T>& block, const Keys& keys, const T* tile, const HeadRows<const T>& rows,
                   bool finite, const HeadRows<T>& out) {
    T* to = out.at(block.example, block.head / p_.group(), keys.first);
    if (!finite) {
      if (first_) clear_rows(keys.count(), rows.width, to, out.row);
      return add_queries_one_by_one(p_, block, keys, tile, rows, out);
    }
    multiply_for_keys(block, keys, block.masks(keys), tile, rows.at(block.example, block.head, block.first),
                      rows.row, rows.width, first_ ? Onto::zeros : Onto::sums, to, out.row);
  }

  // P ∘ F
  const T* drop(const QueryBlock<T>& block, const Keys& keys) {
    dropping_.make(block, keys);
    T* dropped = dropped_.data();
    dropping_.apply(block, keys, tile_.scores(), dropped);
    return dropped;
  }

  // dz Vᵀ → dT; exactly 0 where P is 0.
  void differentiate(const QueryBlock<T>& block, const Keys& keys, bool masked) {
    const auto none = broadcast(T{0});
    const auto scale = broadcast(p_.scale);
    const bool capped = p_.softcap > 0;
    const bool keeps = own_.gradients.scores || own_.doffset;
    for (std::int64_t lane = 0; lane < block.lanes; lane += width<T>) {
      const auto mean = load(mean_.data() + lane);
      const Keys part = masked ? block.part(keys, lane) : keys;
      if (masked) fill_around(block, keys, part, dscores() + lane, none);
      for (std::int64_t j = part.first - keys.first; j < part.last - keys.first; ++j) {
        const std::int64_t at = j * block.lanes + lane;
        const auto p = load(tile_.scores() + at);
        auto dp = load(dscores() + at);
        if (dropping_) dp = dropping_.times(at, dp);
        auto ds = select(p == none, none, p * (dp - mean));
        if (keeps) {
          store(dscores() + at, ds);
          continue;
        }
        if (capped) ds = select(ds == none, none, ds * load(tile_.slopes() + at));
        store(dscores() + at, ds * scale);
      }
    }
    if (!keeps) return;
    keep(block, keys);
    for (std::int64_t at = 0; at < keys.count() * block.lanes; at += width<T>) {
      auto ds = load(dscores() + at);
      if (capped) ds = select(ds == none, none, ds * load(tile_.slopes() + at));
      store(dscores() + at, ds * scale);
    }
  }

  // dS for whoever wants it itself.
  void keep(const QueryBlock<T>& block, const Keys& keys) {
    const std::int64_t head = block.example * p_.heads + block.head;
    if (own_.gradients.scores) {
      for (std::int64_t i = 0; i < block.count; ++i) {
        T* to = own_.gradients.scores + (head * p_.n_q + block.first + i) * p_.n_k;
        for (std::int64_t j = 0; j < keys.count(); ++j) to[keys.first + j] = dscores()[j * block.lanes + i];
      }
    }
    if (!own_.doffset) return;
    const OffsetBias<T>& o = own_.offset_bias;
    T* zero = own_.doffset + (group_ * p_.batch * p_.heads + head) * o.step + o.zero;
    for (std::int64_t j = 0; j < keys.count(); ++j) {
      T* to = zero + block.first - (keys.first + j);
      for (std::int64_t lane = 0; lane < block.lanes; lane += width<T>) {
        store(to + lane, load(to + lane) + load(dscores() + j * block.lanes + lane));
      }
    }
  }

  void clear(const QueryBlock<T>& block) {
    const HeadRows<T> dq = own_.dq_of(group_);
    for (std::int64_t i = 0; i < block.count; ++i) {
      clear_rows(1, p_.d_k, dq.at(block.example, block.head, block.first + i), 0);
    }
  }

  T* dscores() { return weights_gradient_.data(); }

  const Shared<T>& own_;
  const AttentionProblem<T>& p_;
  ScoreTile<T> tile_;
  DropoutTile<T> dropping_;
  Scratch<T> douts_;             // dz of the block, [d_v, lanes]
  Scratch<T> weights_gradient_;  // dP, then dS, then dT, [keys, lanes]
  Scratch<T> dropped_;
  std::int64_t group_ = 0;
  bool first_ = false;  // of the blocks that add to the gradients of a key/value head
  bool ready_ = false, started_ = false, finite_queries_ = true, finite_douts_ = true;
  alignas(64) PerQuery<T> lse_, mean_;
};

// Eight pieces of work at least, where there are as many tiles and the work is worth it: a function of the
// shape alone.
template <class T>
std::int64_t count_groups(const AttentionProblem<T>& p) {
  const std::int64_t pieces = p.batch * p.kv_heads;
  const double products = static_cast<double>(p.n_q) * static_cast<double>(p.n_k * p.batch * p.heads) *
                          static_cast<double>(p.d_k + p.d_v);
  if (pieces == 0 || products < 1e7) return 1;
  return std::clamp<std::int64_t>((8 + pieces - 1) / pieces, 1, std::max<std::int64_t>(p.tiles(), 1));
}

/// to[i] = Σ parts[part·step + i], parts ascending.
template <class T>
void merge(const T* parts, std::int64_t count, std::int64_t step, T* to, std::int64_t n) {
  std::copy_n(parts, n, to);
  for (std::int64_t part = 1; part < count; ++part) {
    const T* from = parts + part * step;
    for (std::int64_t i = 0; i < n; ++i) to[i] += from[i];
  }
}

template <class T>
void merge_queries(const Shared<T>& shared) {
  const AttentionProblem<T>& p = shared.p;
  const std::int64_t row = p.heads * p.d_k;
  const Cost cost{.bytes = static_cast<double>(shared.key_groups * row) * sizeof(T)};
  parallel_for(p.batch * p.n_q, grain_for(cost), cost, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t r = begin; r < end; ++r) {
      merge(shared.dq + r * row, shared.key_groups, p.batch * p.n_q * row,
            shared.gradients.q.at(r / p.n_q, 0, r % p.n_q), row);
    }
  });
}

}  // namespace

template <class T>
void streaming_attention_backward(const AttentionProblem<T>& p, const HeadRows<const T>& out,
                                  const T* log_sum_exp, const HeadRows<const T>& dout,
                                  const AttentionGradients<T>& gradients) {
  profile::moved<T>(2, p.numbers());
  Shared<T> shared{p,    OffsetBias<T>(p), QueryBlocks<T>(p), nullptr, out, log_sum_exp,
                   dout, gradients,        count_groups(p)};
  if (p.mask.may_block()) shared.finite_keys = std::make_unique<FiniteTiles<T>>(p, p.k);
  const std::int64_t groups = shared.key_groups;
  const std::int64_t step = shared.offset_bias.step;
  Array dq, doffset, dsink;
  if (groups > 1) {
    dq = Array({groups, p.batch, p.n_q, p.heads * p.d_k}, dtype_of<T>);
    shared.dq = dq.data<T>();
  }
  if (gradients.offset_bias) {
    doffset = Array::zeros({groups, p.batch, p.heads, step}, dtype_of<T>);
    shared.doffset = doffset.data<T>();
  }
  if (gradients.sink) {
    dsink = Array::zeros({p.batch, p.heads}, dtype_of<T>);
    shared.dsink = dsink.data<T>();
  }
  if (gradients.scores) std::fill_n(gradients.scores, p.batch * p.heads * p.n_q * p.n_k, T{0});

  const auto scores = static_cast<double>(p.n_q * p.n_k * p.group()) / static_cast<double>(groups);
  const Cost cost{.flops = scores * (5 * static_cast<double>(p.d_k + p.d_v) + 32), .bytes = 0};
  parallel_for(p.batch * p.kv_heads * groups, grain_for(cost), cost,
               [&](std::int64_t begin, std::int64_t end) {
                 Backward<T> backward(shared);
                 for (std::int64_t piece = begin; piece < end; ++piece) {
                   const std::int64_t head = piece / groups;
                   backward.run(head / p.kv_heads, head % p.kv_heads, piece % groups);
                 }
               });

  if (groups > 1) merge_queries(shared);
  if (gradients.offset_bias) {
    const std::int64_t offsets = p.offsets();
    Array sum({p.heads, step}, dtype_of<T>);
    sum.zero();
    if (groups * p.batch > 0) {
      merge(shared.doffset, groups * p.batch, p.heads * step, sum.data<T>(), p.heads * step);
    }
    for (std::int64_t h = 0; h < p.heads; ++h) {
      std::reverse_copy(sum.data<T>() + h * step, sum.data<T>() + h * step + offsets,
                        gradients.offset_bias + h * offsets);
    }
  }
  if (gradients.sink) {
    std::fill_n(gradients.sink, p.heads, T{0});
    if (p.batch > 0) merge(shared.dsink, p.batch, p.heads, gradients.sink, p.heads);
  }
}

template void streaming_attention_backward(const AttentionProblem<float>&, const HeadRows<const float>&,
                                           const float*, const HeadRows<const float>&,
                                           const AttentionGradients<float>&);
template void streaming_attention_backward(const AttentionProblem<double>&, const HeadRows<const double>&,
                                           const double*, const HeadRows<const double>&,
                                           const AttentionGradients<double>&);

}  // namespace headlab::kernels
