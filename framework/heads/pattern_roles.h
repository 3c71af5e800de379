// Scores of what heads look at, each with the scores that a head would have which looked elsewhere: the null.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "framework/data/task.h"
#include "framework/train/model.h"

namespace headlab {

/// By place: offset −1, +1, 0; another offset; the same key for every query. By content: delimiters; earlier
/// copies of the query's token; a key that the task names.
enum class PatternRole { previous, next, self, offset, fixed_key, delimiter, duplicate, relation };

/// Mean weight of one head on the keys of a role, over the queries that have such a key.
struct PatternScore {
  PatternRole role = PatternRole::previous;
  /// offset: δ; fixed_key: the key; relation: the task's head target.
  std::int64_t which = 0;
  std::int64_t queries = 0;
  double score = 0;
  /// The same mean of a head that does not do it. By place: the weights of each query's allowed keys in
  /// random order. By content: the pattern of another sequence on the keys of this one, so that what place
  /// alone explains is in the null, too.
  std::vector<double> null;
};

struct PatternRoleOptions {
  std::int64_t null_draws = 1000;
  /// The null is made of the first so many queries of a head at least (whole batches); its spread is then
  /// that of so many, wider than the score's own.
  std::int64_t null_queries = 256;
  /// Patterns are read up to so many weights in all heads and sequences: the whole half of a toy task.
  std::int64_t weights = std::int64_t{1} << 27;
};

/// Head by head, in the order of all_heads(); no entries for a layer that shows no pattern. Offsets (the two
/// heaviest beside −1, 0, +1; in cross attention the two heaviest) and the fixed key, each one that half of
/// the queries have, are chosen on one half of the held-out set; all scores are of the other half. For a
/// model in evaluation mode, under NoGrad (see Looking). The same bits for any number of threads.
std::vector<std::vector<PatternScore>> pattern_scores(Model& model, const Task& task, std::uint64_t seed,
                                                      const PatternRoleOptions& options = {});

}  // namespace headlab
