// The attention of every head on some examples, for display.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "framework/heads/head_sites.h"

namespace headlab {

/// One layer on one example.
struct LayerMaps {
  std::string layer;  ///< "blocks.0.attn"
  AttentionSite site = AttentionSite::self;
  std::vector<std::string> queries, keys;  ///< labels, n_q and n_k of them
  Array weights;                           ///< u8 [heads, n_q, n_k]: 255 times the weight, rounded
};

struct ExampleMaps {
  std::int64_t example = 0;       ///< its place in the held-out set
  std::vector<LayerMaps> layers;  ///< those that show their pattern
};

struct AttentionMapOptions {
  std::int64_t examples = 8;    ///< at most
  std::int64_t positions = 64;  ///< of longer sequences only so many from the start
  std::int64_t bytes =
      900 * 1024;  ///< weights altogether; fewer examples where they do not fit, one at least
};

/// The first examples of the half of the held-out set that is scored, in evaluation mode, without recording.
/// Errors: an option below 1.
std::vector<ExampleMaps> attention_maps(Model& model, const Task& task, std::uint64_t seed,
                                        const AttentionMapOptions& options = {});

}  // namespace headlab
