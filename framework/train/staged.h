// Staged: a model that can be run in pieces, so that what many runs share is computed once.
#pragma once

#include <cstdint>
#include <vector>

#include "framework/data/batch.h"
#include "framework/nn/head_layer.h"

namespace headlab {

/// A model may implement it beside Model. begin(), every stage in order and read_out() of the last tensor
/// give the bits of Model::logits(). Knock-outs then run the stages below a change once for all of them;
/// without it each takes a whole pass.
class Staged {
 public:
  /// What is known between two stages. Each tensor has one row an example, so that states of several batches
  /// can be joined along the leading axis; the last one is the stream that is read out, [B, T, width].
  using State = std::vector<Tensor>;

  virtual ~Staged() = default;
  virtual std::int64_t stages() const = 0;
  /// The stage at whose end the contexts of this layer are ready. The next one begins with their hook and
  /// their gate. Layers in head_layers() order have rising stages.
  virtual std::int64_t stage_of(const HeadLayer& layer) = 0;
  virtual State begin(const Batch& batch) = 0;
  /// Only positions from `first` on will be read out: what nothing of that depends on may be left out of the
  /// state, from the stages of the last layer on. The stream is then [B, T − first, width]; all stages get
  /// the same `first`.
  virtual State run_stage(std::int64_t stage, const Batch& batch, State state, std::int64_t first) = 0;
  /// [B, T, width] → logits [B, T, logits]; each row depends on its own numbers alone.
  virtual Tensor read_out(const Tensor& x) = 0;
};

}  // namespace headlab
