// The attention of one head on one example, for display.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "framework/core/array.h"
#include "framework/heads/head_sites.h"

namespace headlab {

struct ExampleMap {
  HeadId head;
  std::string layer;  ///< "blocks.0.attn"
  AttentionSite site = AttentionSite::self;
  Array weights;                           ///< f32 [n_q, n_k], before dropout; 0 where a key is blocked
  std::vector<std::string> queries, keys;  ///< labels, n_q and n_k of them

  /// Where the task says that a head of this site may look: per head target of kind `key`, a key or
  /// `unscored` for each query.
  struct Looked {
    std::string name;
    std::vector<std::int64_t> keys;
  };
  std::vector<Looked> targets;
};

/// `example` counts the held-out set as a whole. Errors: no such head or example, named with how many there
/// are.
ExampleMap example_map(Model& model, const Task& task, std::uint64_t seed, HeadId head, std::int64_t example);

}  // namespace headlab
