// Where a head sits: which attention it is part of, what its queries may attend to, which queries count.
#pragma once

#include <cstdint>
#include <string>

#include "framework/data/task.h"
#include "framework/nn/head_layer.h"
#include "framework/ops/mask.h"
#include "framework/train/evaluation.h"
#include "framework/train/model.h"

namespace headlab {

/// One head of a model: index of its layer in head_layers(model), index in the layer.
struct HeadId {
  std::int64_t layer = 0;
  std::int64_t head = 0;
  friend bool operator==(const HeadId&, const HeadId&) = default;
  /// "1.3": layer 1, head 3.
  std::string str() const;
};

/// The layers of a model and, where it is asked for, the one of a head. Error: no such layer or head; the
/// message names how many there are.
HeadLayer& layer_of(Model& model, HeadId id);
/// All heads, layer by layer.
std::vector<HeadId> all_heads(Model& model);

/// cross: the layer says so. encoder: in an encoder–decoder, a layer under a module named "encoder". Else
/// self.
AttentionSite site_of(HeadLayer& layer, const Needs& needs);
std::string name_of(AttentionSite site);

/// What queries of a site may attend to: causal self attention where the needs say so (always in the decoder
/// of an encoder–decoder) and real positions where the batch says so, real source positions for encoder and
/// cross attention.
Mask mask_of(AttentionSite site, const Needs& needs, const Batch& batch);

/// u8 [B, n_q], 1 where a query counts in averages: in the decoder the positions with a scored read-out, in
/// the encoder the real source positions.
Array counted_queries(AttentionSite site, const Batch& batch);

/// While it lives, a model is in evaluation mode and nothing is recorded by this thread.
class Looking {
 public:
  explicit Looking(Model& model) : mode_(model, false) {}

 private:
  ModeScope mode_;
  NoGrad no_grad_;
};

}  // namespace headlab
