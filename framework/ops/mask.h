// Masks: which query may attend to which key. True always means *may attend*. Masks join with `&`:
//   Mask::causal() & Mask::key_lengths({5, 3})
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "framework/autograd/tensor.h"
#include "framework/core/array.h"

namespace headlab {

/// With δ = j − (i + n_k − n_q), the key's distance when the last query is aligned with the last key. A
/// default Mask blocks nothing. A value type; one mask may serve many calls and threads. Shapes are checked
/// where the mask is used.
class Mask {
 public:
  Mask() = default;
  /// δ ≤ 0: a query sees itself and what came before. The last query is aligned with the last key.
  static Mask causal();
  /// j ≤ i: the first query is aligned with the first key. PyTorch's is_causal.
  static Mask causal_upper_left();
  /// |δ| < n. Error: n < 1.
  static Mask window(std::int64_t n);
  /// u8, 1 = may attend: [n_q, n_k], or [B or 1, heads or 1, n_q, n_k]. Errors: another type or rank.
  static Mask allow(Array allowed);
  /// Causal but for a prefix that all queries see: δ ≤ 0 or j < lengths[b]. Error: negative.
  static Mask prefix(std::vector<std::int64_t> lengths);
  /// Several sequences packed into one: i64 [B or 1, n_k], ids that never decrease along a row. A query sees
  /// keys with the id of the key at δ = 0, none where there is no such key. Errors: another type or rank; the
  /// place of an id that is smaller than the one before.
  static Mask segments(const Array& ids);
  /// Added to the scaled scores, differentiable: [n_q, n_k], or [B or 1, heads or 1, n_q, n_k]. −∞ blocks.
  static Mask bias(Tensor bias);
  /// Example b has keys 0 … lengths[b]−1. Error: negative.
  static Mask key_lengths(std::vector<std::int64_t> lengths);
  /// u8 [B, n_k], 1 = a real key: padding at any place.
  static Mask valid_keys(Array valid);

  /// A key is allowed when both allow it; biases add up. Errors, naming both: shapes, batches or numbers of
  /// keys that differ; two meanings of causal (causal, causal_upper_left, prefix) or of a query's sequence
  /// (segments with segments or with a prefix).
  friend Mask operator&(const Mask& a, const Mask& b);

  const Tensor& bias() const { return bias_; }
  Mask without_bias() const;
  /// Whether key_lengths or valid_keys say what is padding; and a mask of nothing else.
  bool names_padding() const { return valid_ || !lengths_.empty(); }
  Mask padding_alone() const;
  bool blocks_nothing() const {
    return !causal_ && !upper_left_ && !window_ && !prefix_ && !segments_ && !allow_ && !valid_ &&
           lengths_.empty();
  }

 private:
  friend class ResolvedMask;
  static constexpr std::int64_t any = -1;
  struct Part {
    std::string_view name;
    std::int64_t batch, keys;  // that it is for, or any
  };
  std::vector<Part> parts() const;
  static void check_joins(const Mask& a, const Mask& b);

  bool causal_ = false;
  bool upper_left_ = false;
  std::optional<std::int64_t> window_;
  Array allow_;     // u8 [B or 1, heads or 1, n_q, n_k]
  Array valid_;     // u8 [B, n_k]
  Array segments_;  // i64 [B or 1, n_k, 2]: the first key of a key's segment, and the one behind its last
  std::vector<std::int64_t> lengths_;
  std::optional<std::vector<std::int64_t>> prefix_;
  Tensor bias_;  // [B or 1, heads or 1, n_q, n_k]
};

/// A mask against the sizes of one call: the one place where masks are combined, for every path.
class ResolvedMask {
 public:
  /// Errors name `where`, the mask's shape and the sizes.
  ResolvedMask(const Mask& mask, std::int64_t batch, std::int64_t heads, std::int64_t n_q, std::int64_t n_k,
               std::string_view where);

  struct Row {
    std::int64_t first, last;   ///< keys outside are blocked
    const std::uint8_t* allow;  ///< [n_k] or absent
    const std::uint8_t* valid;  ///< [n_k] or absent
    std::int64_t bias;          ///< offset of the row in the bias, −1 without one

    bool allows(std::int64_t key) const {
      return key >= first && key < last && (!allow || allow[key] != 0) && (!valid || valid[key] != 0);
    }
  };
  Row row(std::int64_t example, std::int64_t head, std::int64_t query) const;
  /// Number of keys that a query may attend to (an additive −∞ is not counted).
  std::int64_t allowed_keys(std::int64_t example, std::int64_t head, std::int64_t query) const;
  /// Whether key_lengths or valid_keys call this key of an example padding.
  bool is_padding(std::int64_t example, std::int64_t key) const;
  bool blocks_nothing() const { return blocks_nothing_; }
  /// Whether Row::first and Row::last are the same in all examples. They are the same in all heads.
  bool same_for_all_examples() const {
    return lengths_.empty() && spans_.empty() && !prefix_ && (!segments_ || segments_.dim(0) == 1);
  }
  const Array& bias() const { return bias_; }
  /// u8 [B or 1, heads or 1, n_q, n_k] and u8 [B, n_k]; absent: nothing is blocked by them.
  const Array& allow() const { return allow_; }
  const Array& valid() const { return valid_; }

 private:
  bool causal_, upper_left_, blocks_nothing_;
  std::int64_t window_, n_q_, n_k_;
  Array allow_, valid_, segments_, bias_;
  std::vector<std::int64_t> lengths_;
  struct Span {
    std::int64_t first, last;
  };
  void find_spans();
  std::vector<Span> spans_;  // of each example's valid keys, where that leaves out much
  std::optional<std::vector<std::int64_t>> prefix_;
};

}  // namespace headlab
