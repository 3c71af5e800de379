#include <memory>
#include <vector>

#include "framework/core/profile.h"
#include "framework/kernels/streaming_held_block.h"

namespace headlab::kernels {

using namespace detail;

namespace {

// With F the factors of dropout, P = softmax(S) over keys and sink, z = (P ∘ F) V:
//   dV = (P ∘ F)ᵀ dz,  dP = (dz Vᵀ) ∘ F,  dS = P ∘ (dP − D),  D = rowsum(P ∘ dP) = rowsum(dz ∘ z),
//   d offset bias = sums of dS over pairs of one distance,  d sink = −Σ e^(sink − lse) D,
//   dT = scale · softcap' · dS,  dQ = dT K,  dK = dTᵀ Q,
// where P = e^(S − lse) is computed again tile by tile.
template <class T>
class Backward {
 public:
  explicit Backward(const BackwardProblem<T>& shared)
      : own_(shared), p_(shared.p), tile_(shared.p, shared.offset_bias), dropping_(shared.p) {
    const std::int64_t groups = own_.key_groups;
    const std::int64_t rows = std::min((p_.tiles() + groups - 1) / groups * attention_keys, p_.n_k);
    copies_ = worth_copies(p_);
    if (copies_) {
      dkeys_ = Scratch<T>(rows * p_.d_k);
      dvalues_ = Scratch<T>(rows * p_.d_v);
      keys_ = Scratch<T>(rows * p_.d_k);
      values_ = Scratch<T>(rows * p_.d_v);
    }
    dscores_ = Scratch<T>(attention_keys * attention_queries);
    if (dropping_) dropped_ = Scratch<T>(attention_keys * attention_queries);
    const bool many_tiles = p_.tiles() > groups;
    const std::int64_t held = many_tiles ? most_held() : 1;
    for (std::int64_t i = 0; i < std::min(held, p_.blocks()); ++i) {
      held_.emplace_back(p_, many_tiles && copies_);
    }
  }

  /// Tiles group, group + key_groups, … of one key/value head.
  void run(std::int64_t b, std::int64_t kv, std::int64_t group) {
    example_ = b;
    kv_ = kv;
    group_ = group;
    take_keys();
    for (std::int64_t h = kv * p_.group(); h < (kv + 1) * p_.group(); ++h) {
      T sink = 0;
      const auto held = static_cast<std::int64_t>(held_.size());
      for (std::int64_t first = 0; first < p_.blocks(); first += held) {
        const std::int64_t count = std::min(held, p_.blocks() - first);
        for (std::int64_t i = 0; i < count; ++i) {
          HeldBlock<T>& block = held_[static_cast<std::size_t>(i)];
          block.block.emplace(own_.blocks(b, h, first + i));
          block.ready = block.started = false;
        }
        for_each_tile([&](std::int64_t tile) {
          for (std::int64_t i = 0; i < count; ++i) {
            HeldBlock<T>& block = held_[static_cast<std::size_t>(i)];
            const Keys keys = keys_of_tile(*block.block, tile);
            first_ = h == kv * p_.group() && first + i == 0;
            if (first_) clear_around(keys, tile);
            if (keys.count() > 0) add(block, keys);
          }
        });
        for (std::int64_t i = 0; i < count; ++i) sink += finish(held_[static_cast<std::size_t>(i)]);
      }
      if (own_.dsink && group == 0) own_.dsink[b * p_.heads + h] = sink;
    }
    give_keys();
  }

 private:
  // Several blocks of queries take part in one pass over keys, values and their gradients, which together are
  // larger than a near cache: as many as stay there themselves. Sums over distances want block after block.
  std::int64_t most_held() const {
    if (own_.doffset) return 1;
    const auto bytes = static_cast<std::int64_t>(sizeof(T)) * attention_queries * (3 * p_.d_k + 2 * p_.d_v);
    return std::clamp<std::int64_t>((std::int64_t{384} << 10) / std::max<std::int64_t>(bytes, 1), 1, 4);
  }

  template <class F>
  void for_each_tile(const F& f) const {
    for (std::int64_t tile = group_; tile < p_.tiles(); tile += own_.key_groups) f(tile);
  }
  // Where key j of the group lies among the rows of its tiles.
  std::int64_t row_of(std::int64_t j) const {
    return j / attention_keys / own_.key_groups * attention_keys + j % attention_keys;
  }

  // Rows from key j on: of the array, or of a copy of the group's part of it.
  template <class U>
  Rows<U> rows_from(std::int64_t j, const HeadRows<U>& rows, const Scratch<T>& copy) const {
    return copies_ ? Rows<U>{copy.data() + row_of(j) * rows.width, rows.width}
                   : rows_of(rows, example_, kv_, j);
  }
  Rows<const T> keys_from(std::int64_t j) const { return rows_from(j, p_.k, keys_); }
  Rows<const T> values_from(std::int64_t j) const { return rows_from(j, p_.v, values_); }
  Rows<T> dkeys_from(std::int64_t j) const { return rows_from(j, own_.gradients.k, dkeys_); }
  Rows<T> dvalues_from(std::int64_t j) const { return rows_from(j, own_.gradients.v, dvalues_); }

  // f(first key, count) for each of the group's tiles.
  template <class F>
  void for_keys(const F& f) const {
    for_each_tile([&](std::int64_t tile) {
      const std::int64_t first = tile * attention_keys;
      f(first, std::min(attention_keys, p_.n_k - first));
    });
  }
  // Gradients of keys first … last − 1.
  void clear(std::int64_t first, std::int64_t last) {
    const Rows<T> dkeys = dkeys_from(first), dvalues = dvalues_from(first);
    clear_rows(last - first, p_.d_k, dkeys.data, dkeys.step);
    clear_rows(last - first, p_.d_v, dvalues.data, dvalues.step);
  }
  // Of those keys of a tile that the first block does not need.
  void clear_around(const Keys& keys, std::int64_t tile) {
    const std::int64_t first = tile * attention_keys, last = std::min(first + attention_keys, p_.n_k);
    if (keys.count() <= 0) return clear(first, last);
    clear(first, keys.first);
    clear(keys.last, last);
  }
  void take_keys() {
    const bool none = p_.blocks() * p_.group() == 0;
    if (!copies_ && !none) return;
    for_keys([&](std::int64_t first, std::int64_t count) {
      if (none) clear(first, first + count);
      if (!copies_) return;
      const std::int64_t row = row_of(first);
      copy_rows<T>(rows_of(p_.k, example_, kv_, first), count, p_.d_k, {keys_.data() + row * p_.d_k, p_.d_k});
      copy_rows<T>(rows_of(p_.v, example_, kv_, first), count, p_.d_v,
                   {values_.data() + row * p_.d_v, p_.d_v});
    });
  }
  void give_keys() {
    if (!copies_) return;
    for_keys([&](std::int64_t first, std::int64_t count) {
      const Rows<T> dkeys = dkeys_from(first), dvalues = dvalues_from(first);
      copy_rows<T>({dkeys.data, dkeys.step}, count, p_.d_k, rows_of(own_.gradients.k, example_, kv_, first));
      copy_rows<T>({dvalues.data, dvalues.step}, count, p_.d_v,
                   rows_of(own_.gradients.v, example_, kv_, first));
    });
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

  // Returns what the block adds to the gradient of the sink.
  T finish(HeldBlock<T>& held) {
    const QueryBlock<T>& block = *held.block;
    const Rows<T> dq = rows_of(own_.dq_of(group_), example_, block.head, block.first);
    if (!held.started) {
      clear_rows(block.count, p_.d_k, dq.data, dq.step);
    } else if (held.dq_copy) {
      copy_rows<T>({held.dq.data, held.dq.step}, block.count, p_.d_k, dq);
    }
    T sum = 0;
    if (!own_.dsink || group_ != 0) return sum;
    held.start(own_, group_);
    for (std::size_t i = 0; i < static_cast<std::size_t>(block.count); ++i) {
      if (held.lse[i] == blocked_score<T>) continue;
      sum -= exp_of(p_.sink[block.head] - held.lse[i]) * held.mean[i];
    }
    return sum;
  }

  void add(HeldBlock<T>& held, const Keys& keys) {
    held.start(own_, group_);
    const QueryBlock<T>& block = *held.block;
    const Rows<const T> key_rows = keys_from(keys.first);
    const bool masked = tile_.fill(block, keys, held.queries.data(), key_rows, [&](std::int64_t lane) {
      return WeightPass{load(held.lse.data() + lane)};
    });
    const T* used = tile_.scores();
    if (dropping_) used = drop(block, keys);
    add_queries(block, keys, used, held.dout, p_.d_v, held.finite_douts, dvalues_from(keys.first));
    multiply_scores(block, keys, block.masks(keys), values_from(keys.first), p_.d_v, held.douts.data(),
                    dscores());
    differentiate(held, keys, masked);
    add_queries(block, keys, dscores(), held.q, p_.d_k, held.finite_queries, dkeys_from(keys.first));
    if (own_.finite_keys && !(*own_.finite_keys)(example_, kv_, keys)) {
      add_rows_one_by_one(p_, block, keys, dscores(), key_rows, p_.d_k, held.started, held.dq);
    } else {
      multiply_for_queries(block, keys, block.masks(keys), dscores(), key_rows, p_.d_k,
                           held.started ? Onto::sums : Onto::nothing, held.dq);
    }
    held.started = true;
  }

  // out [keys] += tile · rows
  void add_queries(const QueryBlock<T>& block, const Keys& keys, const T* tile, const Rows<const T>& rows,
                   std::int64_t columns, bool finite, const Rows<T>& out) {
    if (finite) {
      multiply_for_keys(block, keys, block.masks(keys), tile, rows, columns,
                        first_ ? Onto::zeros : Onto::sums, out);
    } else {
      if (first_) clear_rows(keys.count(), columns, out.data, out.step);
      add_queries_one_by_one(p_, block, keys, tile, rows, columns, out);
    }
  }

  // P ∘ F
  const T* drop(const QueryBlock<T>& block, const Keys& keys) {
    dropping_.make(block, keys);
    T* dropped = dropped_.data();
    dropping_.apply(block, keys, tile_.scores(), dropped);
    return dropped;
  }

  // dz Vᵀ → dT; exactly 0 where P is 0.
  void differentiate(const HeldBlock<T>& held, const Keys& keys, bool masked) {
    const QueryBlock<T>& block = *held.block;
    const auto none = broadcast(T{0});
    const auto scale = broadcast(p_.scale);
    const bool capped = p_.softcap > 0;
    const bool keeps = own_.gradients.scores || own_.doffset;
    for (std::int64_t lane = 0; lane < block.lanes; lane += width<T>) {
      const auto mean = load(held.mean.data() + lane);
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

  T* dscores() { return dscores_.data(); }

  const BackwardProblem<T>& own_;
  const AttentionProblem<T>& p_;
  ScoreTile<T> tile_;
  DropoutTile<T> dropping_;
  // Of the group's tiles, rows side by side, where that pays.
  Scratch<T> dkeys_, dvalues_, keys_, values_;
  Scratch<T> dscores_;  // dP, then dS, then dT, [keys, lanes]
  Scratch<T> dropped_;
  std::vector<HeldBlock<T>> held_;
  std::int64_t example_ = 0, kv_ = 0, group_ = 0;
  bool first_ = false;  // of the blocks that add to the gradients of a key
  bool copies_ = false;
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
void merge_queries(const BackwardProblem<T>& shared) {
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
  BackwardProblem<T> shared{p,    OffsetBias<T>(p), QueryBlocks<T>(p), nullptr, out, log_sum_exp,
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
