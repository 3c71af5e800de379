// What the backward pass of streaming attention shares and what it keeps of a block of queries. For
// streaming_attention_backward.cpp only.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "framework/kernels/streaming_attention.h"
#include "framework/kernels/streaming_tile.h"

namespace headlab::kernels::detail {

template <class T>
struct BackwardProblem {
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

/// A block of queries while tiles of keys pass by.
template <class T>
struct HeldBlock {
  HeldBlock(const AttentionProblem<T>& p, bool copies)
      : queries(p.d_k * attention_queries), douts(p.d_v * attention_queries) {
    if (!copies) return;
    q_copy = Scratch<T>(p.d_k * attention_queries);
    dout_copy = Scratch<T>(p.d_v * attention_queries);
    dq_copy = Scratch<T>(p.d_k * attention_queries);
  }
  // Once a block, and only where there is a tile for it: under a causal mask half of the groups have none.
  void start(const BackwardProblem<T>& problem, std::int64_t group) {
    if (ready) return;
    ready = true;
    const AttentionProblem<T>& p = problem.p;
    const QueryBlock<T>& own = *block;
    q = rows_of(p.q, own.example, own.head, own.first);
    dout = rows_of(problem.dout, own.example, own.head, own.first);
    dq = rows_of(problem.dq_of(group), own.example, own.head, own.first);
    if (q_copy) {
      copy_rows<T>(q, own.count, p.d_k, {q_copy.data(), p.d_k});
      copy_rows<T>(dout, own.count, p.d_v, {dout_copy.data(), p.d_v});
      q = {q_copy.data(), p.d_k};
      dout = {dout_copy.data(), p.d_v};
      dq = {dq_copy.data(), p.d_k};
    }
    transpose_block<T>(q, own.count, p.d_k, queries.data(), own.lanes);
    transpose_block<T>(dout, own.count, p.d_v, douts.data(), own.lanes);
    lse.fill(T{0});
    mean.fill(T{0});
    const std::int64_t row = (own.example * p.heads + own.head) * p.n_q + own.first;
    for (std::int64_t i = 0; i < own.count; ++i) {
      const T* z = problem.out.at(own.example, own.head, own.first + i);
      const T* dz = dout.at(i);
      auto sum = broadcast(T{0});
      for_lanes<T>(p.d_v,
                   [&](std::int64_t k, auto part) { sum = fma(get(z + k, part), get(dz + k, part), sum); });
      const auto at = static_cast<std::size_t>(i);
      lse[at] = problem.log_sum_exp[row + i];
      mean[at] = lse[at] == blocked_score<T> ? T{0} : horizontal_sum(sum);
    }
    // Without a mask every query sees every key, and what is not finite belongs into every sum.
    finite_queries = !problem.finite_keys || all_finite(queries.data(), 1, p.d_k * own.lanes, 0);
    finite_douts = !problem.finite_keys || all_finite(douts.data(), 1, p.d_v * own.lanes, 0);
  }

  std::optional<QueryBlock<T>> block;
  Scratch<T> queries, douts;              // q and dz transposed, [d, lanes]
  Scratch<T> q_copy, dout_copy, dq_copy;  // rows side by side, where they are read often
  Rows<const T> q, dout;
  Rows<T> dq;
  bool ready = false, started = false, finite_queries = true, finite_douts = true;
  alignas(64) PerQuery<T> lse, mean;  // mean: D
};

}  // namespace headlab::kernels::detail
