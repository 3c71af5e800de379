#include "framework/heads/role_keys.h"

#include <algorithm>

#include "framework/core/random.h"

namespace headlab {

Array whole_tokens(const Batch& batch, AttentionSite site, const Needs& needs) {
  const bool pair = needs.architecture == Architecture::encoder_decoder;
  if (site == AttentionSite::encoder) return batch.inputs.front();
  if (pair || batch.inputs.size() == 1) return batch.inputs.back();
  Array tokens = batch.inputs.front().copy();
  for (std::size_t s = 1; s < batch.inputs.size(); ++s) {
    for (std::int64_t i = 0; i < tokens.size(); ++i) {
      std::int64_t& token = tokens.data<std::int64_t>()[i];
      const std::int64_t other = batch.inputs[s].data<std::int64_t>()[i];
      token = static_cast<std::int64_t>(
          hash(static_cast<std::uint64_t>(token), static_cast<std::uint64_t>(other)));
    }
  }
  return tokens;
}

RoleKeys delimiter_keys(const Batch& batch, const Task& task, const CountedQueries& counted) {
  const std::vector<std::int64_t> delimiters = task.delimiters();
  const Array& tokens = batch.inputs.back();
  RoleKeys keys(counted.n_q);
  for (std::int64_t b = 0; b < tokens.dim(0); ++b) {
    const std::int64_t* ids = example_of(tokens, b);
    for (std::int64_t i = 0; i < counted.n_q; ++i) {
      const ResolvedMask::Row row = counted.mask.row(b, 0, i);
      for (std::int64_t j = row.first; counted(b, i) && j < row.last; ++j) {
        if (row.allows(j) && std::count(delimiters.begin(), delimiters.end(), ids[j]) > 0) keys.add(j);
      }
      keys.end_query();
    }
  }
  return keys;
}

RoleKeys duplicate_keys(const Array& tokens, const CountedQueries& counted) {
  RoleKeys keys(counted.n_q);
  for (std::int64_t b = 0; b < tokens.dim(0); ++b) {
    const std::int64_t* ids = example_of(tokens, b);
    for (std::int64_t i = 0; i < counted.n_q; ++i) {
      const ResolvedMask::Row row = counted.mask.row(b, 0, i);
      for (std::int64_t j = row.first; counted(b, i) && j < std::min(i, row.last); ++j) {
        if (row.allows(j) && ids[j] == ids[i]) keys.add(j);
      }
      keys.end_query();
    }
  }
  return keys;
}

RoleKeys named_keys(const Array& labels, const CountedQueries& counted) {
  RoleKeys keys(counted.n_q);
  for (std::int64_t b = 0; b < labels.dim(0); ++b) {
    const std::int64_t* named = example_of(labels, b);
    for (std::int64_t i = 0; i < counted.n_q; ++i) {
      if (named[i] != unscored && counted.choice(b, i)) keys.add(named[i]);
      keys.end_query();
    }
  }
  return keys;
}

}  // namespace headlab
