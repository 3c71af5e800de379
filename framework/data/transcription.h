// The set-up that `copy` and `reverse` share: an encoder–decoder reads 6 … 16 symbols of 16 kinds and an end
// mark in 17 slots, and writes the symbols in some order and an end mark.
#pragma once

#include "framework/data/task.h"

namespace headlab {

/// One head target: at the query that predicts the i-th symbol, the source slot of that symbol (cross
/// attention). The end mark has no target.
class TranscriptionTask : public Task {
 public:
  static constexpr std::int64_t slots = 17, shortest = 6, longest = 16, symbols = 16;
  static constexpr std::int64_t pad = 0, start = 1, end = 2, first_symbol = 3;
  static constexpr std::int64_t tokens = first_symbol + symbols;

  Needs needs() const final;
  Recipe recipe() const final;
  Accuracy accuracy() const final { return Accuracy::whole_sequence; }
  std::optional<Greedy> greedy() const final { return Greedy{start, end}; }
  double chance() const final { return 0; }
  std::vector<std::int64_t> delimiters() const final { return {start, end}; }
  std::optional<std::int64_t> start_token() const final { return start; }
  std::vector<HeadTarget> head_targets() const final;
  std::vector<Claim> claims() const final;

 protected:
  /// The claims that differ: least share of whole sequences with sixteen heads, least mass on the alignment
  /// with one head and with four.
  struct Least {
    double whole_of_sixteen, aligned_of_one, aligned_of_four;
  };
  virtual Least least() const = 0;
  /// The slot in which a source of `length` symbols begins; slots before it and after its end mark are
  /// padding.
  virtual std::int64_t source_begin(std::int64_t length) const = 0;
  /// The index of the source symbol that comes out at `position`.
  virtual std::int64_t source_symbol(std::int64_t position, std::int64_t length) const = 0;

  void write(Batch& batch, std::int64_t row, Random& random) const final;
  std::string spell(std::size_t stream, std::int64_t id) const final;
};

}  // namespace headlab
