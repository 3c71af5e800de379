// Which keys of a query a content role is about.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "framework/data/task.h"
#include "framework/ops/mask.h"

namespace headlab {

/// Which queries take part: those that count and have two keys to choose from.
struct CountedQueries {
  const ResolvedMask& mask;
  const std::uint8_t* flags;  ///< u8 [B, n_q]
  std::int64_t n_q;

  bool choice(std::int64_t example, std::int64_t query) const {
    return mask.allowed_keys(example, 0, query) >= 2;
  }
  bool operator()(std::int64_t example, std::int64_t query) const {
    return flags[example * n_q + query] != 0 && choice(example, query);
  }
};

/// For every query of a batch the keys, none where the query takes no part.
class RoleKeys {
 public:
  explicit RoleKeys(std::int64_t n_q) : n_q_(n_q) {}
  /// Queries in order.
  void add(std::int64_t key) { keys_.push_back(key); }
  void end_query() { ends_.push_back(keys_.size()); }
  std::span<const std::int64_t> of(std::int64_t example, std::int64_t query) const {
    const auto index = static_cast<std::size_t>(example * n_q_ + query);
    const std::size_t begin = index == 0 ? 0 : ends_[index - 1];
    return {keys_.data() + begin, ends_[index] - begin};
  }

 private:
  std::int64_t n_q_;
  std::vector<std::int64_t> keys_;
  std::vector<std::size_t> ends_;
};

/// One number a token: equal where all streams that a site reads are equal. i64 [B, n].
Array whole_tokens(const Batch& batch, AttentionSite site, const Needs& needs);

/// Allowed keys that hold a delimiter of the stream read last; for self attention.
RoleKeys delimiter_keys(const Batch& batch, const Task& task, const CountedQueries& counted);
/// Allowed keys before the query with its token; not for cross attention.
RoleKeys duplicate_keys(const Array& tokens, const CountedQueries& counted);
/// The keys that labels i64 [B, n_q] name, with `unscored` for none; whether a query counts is theirs to say.
RoleKeys named_keys(const Array& labels, const CountedQueries& counted);

}  // namespace headlab
