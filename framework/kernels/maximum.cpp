#include "framework/kernels/maximum.h"

#include <algorithm>

#include "framework/core/array.h"
#include "framework/core/parallel.h"
#include "framework/core/profile.h"

namespace headlab::kernels {

namespace {

constexpr std::int64_t piece = 16384;

// Whether `candidate`, met later, takes the place of `best`.
template <class T>
bool beats(T candidate, T best) {
  return candidate > best || (candidate != candidate && best == best);
}

template <class T>
void maximum_of_rows(const T* x, std::int64_t outer, std::int64_t n, T* y, std::int64_t* first) {
  // Pieces of a row, then their winners in order: one long row can be shared among threads.
  const std::int64_t pieces = (n + piece - 1) / piece;
  const std::int64_t size = std::min(n, piece);
  const Cost cost{.flops = 16.0 * static_cast<double>(size), .bytes = static_cast<double>(size) * sizeof(T)};
  const auto winner = [](const T* row, std::int64_t begin, std::int64_t end) {
    std::int64_t best = begin;
    for (std::int64_t i = begin + 1; i < end; ++i) {
      if (beats(row[i], row[best])) best = i;
    }
    return best;
  };
  if (pieces == 1) {
    parallel_for(outer, std::max<std::int64_t>(1, piece / size), cost,
                 [&](std::int64_t begin, std::int64_t end) {
                   for (std::int64_t o = begin; o < end; ++o) {
                     first[o] = winner(x + o * n, 0, n);
                     y[o] = x[o * n + first[o]];
                   }
                 });
    return;
  }
  Array winners({outer * pieces}, DType::i64);
  auto* best = winners.data<std::int64_t>();
  parallel_for(outer * pieces, 1, cost, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t k = begin; k < end; ++k) {
      const std::int64_t from = k % pieces * piece;
      best[k] = winner(x + k / pieces * n, from, std::min(from + piece, n));
    }
  });
  for (std::int64_t o = 0; o < outer; ++o) {
    const T* row = x + o * n;
    std::int64_t at = best[o * pieces];
    for (std::int64_t k = 1; k < pieces; ++k) {
      if (beats(row[best[o * pieces + k]], row[at])) at = best[o * pieces + k];
    }
    first[o] = at;
    y[o] = row[at];
  }
}

template <class T>
void maximum_any(const T* x, std::int64_t outer, std::int64_t reduced, std::int64_t inner, T* y,
                 std::int64_t* first) {
  profile::moved<T>(1, outer * reduced * inner);
  if (inner == 1) return maximum_of_rows(x, outer, reduced, y, first);
  const Cost cost{.flops = 16.0 * static_cast<double>(reduced),
                  .bytes = static_cast<double>(reduced) * sizeof(T)};
  parallel_for(outer * inner, 256, cost, [&](std::int64_t begin, std::int64_t end) {
    while (begin < end) {
      const std::int64_t o = begin / inner;
      const std::int64_t stop = std::min(end, (o + 1) * inner);
      const std::int64_t count = stop - begin;
      const T* source = x + o * reduced * inner + (begin - o * inner);
      std::copy_n(source, count, y + begin);
      std::fill_n(first + begin, count, 0);
      for (std::int64_t r = 1; r < reduced; ++r) {
        for (std::int64_t i = 0; i < count; ++i) {
          const T candidate = source[r * inner + i];
          const bool better = beats(candidate, y[begin + i]);
          y[begin + i] = better ? candidate : y[begin + i];
          first[begin + i] = better ? r : first[begin + i];
        }
      }
      begin = stop;
    }
  });
}

}  // namespace

void maximum(const float* x, std::int64_t outer, std::int64_t reduced, std::int64_t inner, float* y,
             std::int64_t* first) {
  maximum_any(x, outer, reduced, inner, y, first);
}
void maximum(const double* x, std::int64_t outer, std::int64_t reduced, std::int64_t inner, double* y,
             std::int64_t* first) {
  maximum_any(x, outer, reduced, inner, y, first);
}

}  // namespace headlab::kernels
